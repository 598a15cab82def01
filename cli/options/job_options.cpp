#include "cli/options/job_options.hpp"

#include <array>
#include <charconv>
#include <type_traits>

#include "runtime/base/units.hpp"

namespace troupe {
namespace {

using wrong = std::optional<std::string>;

template <class Number>
wrong store_number(Number& into, std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value);
  if (status == std::errc::result_out_of_range && rest == end) return "too large";
  if (status != std::errc{} || rest != end) return "not a whole number";
  into = value;
  return std::nullopt;
}

template <auto Member>
wrong number(job_settings& s, std::string_view text) {
  return store_number(s.*Member, text);
}
template <auto Member>
wrong length(job_settings& s, std::string_view text) {
  std::uint64_t value = 0;
  if (auto bad = store_number(value, text)) return bad;
  s.*Member = value;
  return std::nullopt;
}
template <auto Member>
wrong text_value(job_settings& s, std::string_view text) {
  s.*Member = text;
  return std::nullopt;
}
template <auto Member>
wrong span_of_time(job_settings& s, std::string_view text) {
  const auto value = parse_duration(text);
  if (!value) return "not a duration";
  s.*Member = *value;
  return std::nullopt;
}
template <auto Member>
wrong size(job_settings& s, std::string_view text) {
  const auto value = parse_size(text);
  if (!value) return "not a size";
  s.*Member = *value;
  return std::nullopt;
}
wrong resume(job_settings& s, std::string_view text) {
  const auto choice = parse_resume(text);
  if (!choice) return "neither a word nor a step";
  s.resume = *choice;
  return std::nullopt;
}
wrong fault_spec(job_settings& s, std::string_view text) {
  const auto parsed = parse_fault(text);
  if (!parsed) return parsed.failure().text;
  s.faults.push_back(*parsed);
  return std::nullopt;
}
wrong quiet(job_settings& s, std::string_view) {
  s.quiet = true;
  return std::nullopt;
}

using js = job_settings;
constexpr std::string_view workers = "Workers";
constexpr std::string_view training = "Training";
constexpr std::string_view checkpoints = "Checkpoints";
constexpr std::string_view failures = "Failures";
constexpr std::string_view output = "Output";
constexpr std::string_view hosts = "Several hosts";
constexpr std::string_view any_path = "a path";
constexpr std::string_view any_address = "HOST:PORT";

constexpr std::array<job_option, 34> table{{
    {"--workers", "N", workers, "worker processes at start (2)", "1 to 1024", number<&js::workers>},
    {"--workers-min", "N", workers, "with fewer, the job waits for replacements (1)", "1 to --workers",
     number<&js::workers_min>},
    {"--workers-max", "N", workers, "never more than this (as many as shards)", "--workers to --shards",
     number<&js::workers_max>},
    {"--external", "N", workers, "of --workers, how many are not started here but join with --join (0)",
     "0 to --workers", number<&js::external>},
    {"--device", "DEVICE", workers, "auto, cpu or cuda:N (auto)", "auto, cpu, cuda:N",
     text_value<&js::device>},
    {"--transport", "NAME", workers, "messages between processes: tcp, or shm on one host (tcp)", "tcp, shm",
     text_value<&js::transport>},
    {"--collective", "NAME", workers,
     "sums: shm in a host's memory, ring over the network, auto as fits (auto)", "auto, shm, ring",
     text_value<&js::collective>},
    {"--spin", "DURATION", workers, "look for messages that long before sleeping; needs spare cores (0ms)",
     "a duration such as 50us", span_of_time<&js::spin>},

    {"--steps", "N", training, "length in optimizer steps", "a whole number from 1", length<&js::steps>},
    {"--epochs", "N", training, "length in passes over the data; not with --steps", "a whole number from 1",
     length<&js::epochs>},
    {"--global-batch", "N", training, "samples per step, a multiple of --shards (128)",
     "a multiple of --shards", number<&js::global_batch>},
    {"--shards", "N", training, "logical shards of the sum; results depend on it, not on workers (8)",
     "1 to 4096", number<&js::shards>},
    {"--accumulate", "N", training, "global batches summed in one step (1)", "a whole number from 1",
     number<&js::accumulate>},
    {"--wire", "FORMAT", training, "gradients are summed rounded to this; results depend on it (float32)",
     "float32, float16, bfloat16", text_value<&js::wire>},
    {"--bucket", "SIZE", training, "gradients summed while backward goes on, 0 for none (4MiB)",
     "0, or a size such as 4MiB", size<&js::bucket>},
    {"--seed", "N", training, "seed of everything random (1)", "a whole number", number<&js::seed>},

    {"--checkpoint-dir", "DIR", checkpoints, "where checkpoints go (none are taken)", any_path,
     text_value<&js::checkpoint_dir>},
    {"--checkpoint-every", "N", checkpoints, "steps between two checkpoints (100)", "a whole number from 1",
     number<&js::checkpoint_every>},
    {"--keep", "K", checkpoints, "checkpoints kept, the newest (3)", "a whole number from 1",
     number<&js::keep>},
    {"--resume", "auto|none|STEP", checkpoints, "newest that verifies, nothing, or that one (auto)",
     "auto, none, a step", resume},

    {"--detect-after", "DURATION", failures, "the one time-out setting; all others derive from it (1s)",
     "a duration such as 250ms, 1s or 2min", span_of_time<&js::detect_after>},
    {"--fault", "SPEC", failures, "injects a fault; may be given several times (see below)", "", fault_spec,
     true},

    {"--events", "FILE", output, "events, one JSON object a line", any_path, text_value<&js::events>},
    {"--summary", "FILE", output, "the summary, one JSON object, whatever the end", any_path,
     text_value<&js::summary>},
    {"--flight", "DIR", output, "after a failure, the last calls between ranks: troupe flight DIR (off)",
     any_path, text_value<&js::flight>},
    {"--metrics", "HOST:PORT", output, "Prometheus metrics and the live page (off)", any_address,
     text_value<&js::metrics>},
    {"--quiet", "", output, "no progress line", "", quiet},

    {"--listen", "HOST:PORT", hosts, "where workers of other hosts join (127.0.0.1, any port)", any_address,
     text_value<&js::listen>},
    {"--join", "HOST:PORT", hosts, "be a worker of the director there", any_address, text_value<&js::join>},
    {"--network", "DEVICE", hosts, "the network device that carries this process's messages (lo)",
     "the name of one, such as lo or eth0", text_value<&js::network>},
    {"--token-file", "FILE", hosts, "secret that both sides hold (a random one)", any_path,
     text_value<&js::token_file>},
    {"--tls-cert", "FILE", hosts, "joining inside TLS: the certificate to show, PEM (no TLS)", any_path,
     text_value<&js::tls_cert>},
    {"--tls-key", "FILE", hosts, "its private key, which only its owner can read", any_path,
     text_value<&js::tls_key>},
    {"--tls-ca", "FILE", hosts, "by which certificates the other side is verified", any_path,
     text_value<&js::tls_ca>},
}};

} // namespace

std::span<const job_option> job_options() {
  return table;
}

} // namespace troupe
