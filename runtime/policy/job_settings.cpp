#include "runtime/policy/job_settings.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "runtime/base/limits.hpp"
#include "runtime/base/units.hpp"

namespace troupe {
namespace {

using result = expected<void>;

error refused(std::string_view option, const std::string& value, const std::string& what,
              const std::string& accepted) {
  return {errc::bad_argument, std::string{option} + (value.empty() ? "" : " " + value) + ": " + what +
                                  (accepted.empty() ? "" : "; accepted: " + accepted)};
}

result in_range(std::string_view option, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  if (value >= low && value <= high) return {};
  if (high == std::numeric_limits<std::uint64_t>::max())
    return refused(option, std::to_string(value), "too small", "at least " + std::to_string(low));
  return refused(option, std::to_string(value), value < low ? "too small" : "too large",
                 std::to_string(low) + " to " + std::to_string(high));
}

bool is_endpoint(std::string_view text, unsigned port_min) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const auto host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != std::string_view::npos) return false;
  const auto port_text = text.substr(colon + 1);
  unsigned port = 0;
  const char* const end = port_text.data() + port_text.size();
  const auto [rest, status] = std::from_chars(port_text.data(), end, port);
  return status == std::errc{} && rest == end && port >= port_min && port <= 65535;
}

bool is_device(std::string_view text) {
  return text == "auto" || text == "cpu" || gpu_of(text);
}

// A list, or a number of a port, would be UCX's language.
bool is_network_device(std::string_view text) {
  constexpr std::size_t name_max = 15; // IFNAMSIZ
  constexpr std::string_view others = "-_.@";
  return !text.empty() && text.size() <= name_max && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

result check_workers(const job_settings& s) {
  if (const auto r = in_range("--shards", s.shards, 1, limits::shards_max); !r) return r;
  if (const auto r = in_range("--workers", s.workers, 1, limits::workers_max); !r) return r;
  if (s.workers > s.shards)
    return refused("--workers", std::to_string(s.workers),
                   "more than the " + std::to_string(s.shards) + " of --shards, so some would have no work",
                   "1 to " + std::to_string(s.shards));
  if (const auto r = in_range("--workers-min", s.workers_min, 1, limits::workers_max); !r) return r;
  if (s.workers_min > s.workers)
    return refused("--workers-min", std::to_string(s.workers_min),
                   "more than --workers " + std::to_string(s.workers), "1 to " + std::to_string(s.workers));
  if (s.external > s.workers)
    return refused("--external", std::to_string(s.external),
                   "more than --workers " + std::to_string(s.workers), "0 to " + std::to_string(s.workers));
  if (s.workers_max != 0 && (s.workers_max < s.workers || s.workers_max > s.shards))
    return refused("--workers-max", std::to_string(s.workers_max),
                   s.workers_max < s.workers ? "less than --workers " + std::to_string(s.workers)
                                             : "more than --shards " + std::to_string(s.shards),
                   std::to_string(s.workers) + " to " + std::to_string(s.shards));
  if (!is_device(s.device)) return refused("--device", s.device, "no such device", "auto, cpu, cuda:N");
  if (s.transport != "tcp" && s.transport != "shm")
    return refused("--transport", s.transport, "no such transport", "tcp, shm");
  if (s.collective != "auto" && s.collective != "shm" && s.collective != "ring")
    return refused("--collective", s.collective, "no such collective", "auto, shm, ring");
  if (!is_network_device(s.network))
    return refused("--network", s.network, "not a device's name", "the name of one, such as lo or eth0");
  if (s.spin < duration{0} || s.spin > spin_max)
    return refused("--spin", format_duration(s.spin), "out of range", "0ms to " + format_duration(spin_max));
  return {};
}

// Sums on GPUs are of whole float32 gradients, and NCCL's.
result check_gpu(const job_settings& s) {
  if (!s.gpu()) return {};
  const auto beside = [&s](const std::string& option, const std::string& value, const std::string& accepted) {
    return refused("--device", s.device, option + " " + value + " is not summed on GPUs",
                   option + " " + accepted + ", or --device cpu");
  };
  if (s.wire != "float32") return beside("--wire", s.wire, "float32");
  if (s.top_k != 0) return beside("--top-k", format_number(s.top_k), "0");
  if (s.collective != "auto") return beside("--collective", s.collective, "auto");
  return {};
}

result check_top_k(const job_settings& s) {
  if (s.top_k == 0) return {};
  const auto value = format_number(s.top_k);
  if (!(s.top_k >= limits::top_k_min && s.top_k <= limits::top_k_max))
    return refused("--top-k", value, "out of range", "0 (everything is summed), or 0.0001 to 0.5");
  if (s.wire != "float32")
    return refused("--top-k", value, "the entries kept are not rounded, and --wire says " + s.wire,
                   "one of the two");
  if (s.shards > limits::top_k_shards_max)
    return refused("--top-k", value,
                   "each of " + std::to_string(s.shards) + " --shards would have a residual in the state",
                   "with --shards up to " + std::to_string(limits::top_k_shards_max));
  return {};
}

result check_batch(const job_settings& s) {
  if (const auto r = in_range("--global-batch", s.global_batch, 1, limits::global_batch_max); !r) return r;
  if (const auto r = in_range("--accumulate", s.accumulate, 1, limits::global_batch_max); !r) return r;
  if (s.wire != "float32" && s.wire != "float16" && s.wire != "bfloat16")
    return refused("--wire", s.wire, "no such format", "float32, float16, bfloat16");
  if (auto r = check_top_k(s); !r) return r;
  if (auto r = check_gpu(s); !r) return r;
  if (s.bucket != 0 && (s.bucket < limits::bucket_bytes_min || s.bucket > limits::bucket_bytes_max))
    return refused("--bucket", format_size(s.bucket), "out of range", "0, or 64 bytes to 1GiB");
  const std::uint64_t unit = s.shards;
  if (s.global_batch % unit == 0) return {};
  const std::uint64_t below = s.global_batch / unit * unit;
  const std::uint64_t above = below + unit;
  const bool above_fits = above <= limits::global_batch_max;
  std::string nearest = below == 0 ? "" : std::to_string(below);
  if (above_fits) nearest += (nearest.empty() ? "" : " or ") + std::to_string(above);
  return refused("--global-batch", std::to_string(s.global_batch),
                 "not divisible into " + std::to_string(s.shards) + " shards" +
                     (nearest.empty() ? "" : "; nearest: " + nearest),
                 "multiples of " + std::to_string(unit));
}

result check_length(const job_settings& s) {
  if (s.steps && s.epochs)
    return refused("--epochs", std::to_string(*s.epochs),
                   "--steps " + std::to_string(*s.steps) + " is given too", "one of the two");
  constexpr std::uint64_t length_max = 1'000'000'000'000;
  if (s.steps) return in_range("--steps", *s.steps, 1, length_max);
  if (s.epochs) return in_range("--epochs", *s.epochs, 1, length_max);
  return {};
}

result check_checkpoints(const job_settings& s) {
  constexpr auto no_bound = std::numeric_limits<std::uint64_t>::max();
  if (const auto r = in_range("--checkpoint-every", s.checkpoint_every, 1, no_bound); !r) return r;
  if (const auto r = in_range("--keep", s.keep, 1, 10'000); !r) return r;
  if (s.resume.what == resume_choice::kind::version && s.checkpoint_dir.empty())
    return refused("--resume", to_text(s.resume), "there is nothing to resume from without --checkpoint-dir",
                   "auto, none, or a step with --checkpoint-dir DIR");
  return {};
}

result check_fault(const job_settings& s, const fault& f) {
  const auto refuse = [&](const std::string& what, const std::string& accepted) {
    return refused("--fault", to_text(f), what, accepted);
  };
  const bool on_rank =
      f.target.where == fault_target::place::worker || f.target.where == fault_target::place::prefetcher;
  const auto ranks = s.workers_max == 0 ? s.workers : s.workers_max;
  if (on_rank && f.target.which == fault_target::choice::one && f.target.number >= ranks)
    return refuse("there is no rank " + std::to_string(f.target.number) + " with " + std::to_string(ranks) +
                      (ranks == 1 ? " worker" : " workers"),
                  "0 to " + std::to_string(ranks - 1) + ", any, all");
  if (s.steps && f.when.what == fault_moment::kind::step && f.when.step.value() > *s.steps)
    return refuse("the job ends at step " + std::to_string(*s.steps),
                  "step=1 to step=" + std::to_string(*s.steps));
  const bool on_disk = f.target.where == fault_target::place::checkpoint || f.kind == fault_kind::disk_full ||
                       f.kind == fault_kind::disk_slow;
  if (on_disk && s.checkpoint_dir.empty())
    return refuse("there are no checkpoints without --checkpoint-dir", "with --checkpoint-dir DIR");
  return {};
}

result check_failures(const job_settings& s) {
  if (s.detect_after < detect_after_min || s.detect_after > detect_after_max)
    return refused("--detect-after", format_duration(s.detect_after), "out of range",
                   format_duration(detect_after_min) + " to " + format_duration(detect_after_max));
  if (s.faults.size() > plan_faults_max)
    return refused("--fault", "", std::to_string(s.faults.size()) + " faults are too many",
                   "at most " + std::to_string(plan_faults_max));
  for (const auto& f : s.faults) {
    if (const auto r = check_fault(s, f); !r) return r;
  }
  return {};
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t more = 0;
    if (lead >= 0xc2 && lead < 0xe0)
      more = 1;
    else if (lead >= 0xe0 && lead < 0xf0)
      more = 2;
    else if (lead >= 0xf0 && lead < 0xf5)
      more = 3;
    else if (lead >= 0x80)
      return false;
    for (; more > 0; --more) {
      if (++i == text.size() || (static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80) return false;
    }
  }
  return true;
}

// Settings travel as text (JS-1).
result check_texts(const job_settings& s) {
  const auto check = [](std::string_view option, const std::string& value) -> result {
    constexpr std::size_t bytes_max = 4096;
    if (value.size() > bytes_max)
      return refused(option, "", std::to_string(value.size()) + " bytes are too long",
                     "at most " + std::to_string(bytes_max));
    if (!is_utf8(value)) return refused(option, "", "not UTF-8", "text in UTF-8");
    return {};
  };
  for (const auto& [option, value] :
       {std::pair<std::string_view, const std::string&>{"--checkpoint-dir", s.checkpoint_dir},
        {"--events", s.events},
        {"--summary", s.summary},
        {"--token-file", s.token_file},
        {"--tls-cert", s.tls_cert},
        {"--tls-key", s.tls_key},
        {"--tls-ca", s.tls_ca},
        {"--listen", s.listen},
        {"--join", s.join},
        {"--metrics", s.metrics}}) {
    if (auto r = check(option, value); !r) return r;
  }
  for (const auto& [name, value] : s.extra) {
    if (auto r = check("--" + name, value); !r) return r;
  }
  return {};
}

// Who shows a certificate to a director verifies it as well, and who demands certificates shows one.
result check_tls(const job_settings& s) {
  if (s.tls_cert.empty() && !s.tls_key.empty())
    return refused("--tls-key", s.tls_key, "a key without its certificate", "with --tls-cert FILE");
  if (!s.tls_cert.empty() && s.tls_key.empty())
    return refused("--tls-cert", s.tls_cert, "a certificate without its key", "with --tls-key FILE");
  if (s.join.empty() && s.tls_cert.empty() && !s.tls_ca.empty())
    return refused("--tls-ca", s.tls_ca, "a director that verifies its joiners shows a certificate itself",
                   "with --tls-cert FILE and --tls-key FILE, or --join HOST:PORT");
  if (!s.join.empty() && !s.tls_cert.empty() && s.tls_ca.empty())
    return refused("--tls-cert", s.tls_cert, "the director would not be verified",
                   "with --tls-ca FILE, an authority of the director's certificate");
  return {};
}

result check_outside(const job_settings& s) {
  if (!s.events.empty() && s.events == s.summary)
    return refused("--summary", s.summary, "--events writes to the same file", "another file");
  if (!s.metrics.empty() && !is_endpoint(s.metrics, 0))
    return refused("--metrics", s.metrics, "not an address", "HOST:PORT, such as 127.0.0.1:9464");
  if (!is_endpoint(s.listen, 0))
    return refused("--listen", s.listen, "not an address", "HOST:PORT, such as 0.0.0.0:4100 (port 0: any)");
  if (s.join.empty()) return {};
  if (!is_endpoint(s.join, 1))
    return refused("--join", s.join, "not an address", "HOST:PORT of the director");
  if (s.token_file.empty())
    return refused("--join", s.join, "the director admits only who holds its token",
                   "with --token-file FILE, the director's");
  return {};
}

} // namespace

expected<void> job_settings::validate() const {
  for (const auto check : {check_texts, check_workers, check_batch, check_length, check_checkpoints,
                           check_failures, check_outside, check_tls}) {
    if (auto r = check(*this); !r) return r;
  }
  return {};
}

element_type job_settings::wire_type() const {
  if (wire == "float16") return element_type::float16;
  return wire == "bfloat16" ? element_type::bfloat16 : element_type::float32;
}

std::optional<std::uint32_t> gpu_of(std::string_view device) {
  constexpr std::string_view kind = "cuda:";
  if (!device.starts_with(kind)) return std::nullopt;
  std::uint32_t index = 0;
  const char* const end = device.data() + device.size();
  const auto [rest, status] = std::from_chars(device.data() + kind.size(), end, index);
  if (status != std::errc{} || rest != end || index >= limits::gpus_max) return std::nullopt;
  return index;
}

std::string to_text(const resume_choice& choice) {
  switch (choice.what) {
  case resume_choice::kind::newest_verified:
    return "auto";
  case resume_choice::kind::nothing:
    return "none";
  case resume_choice::kind::version:
    return to_string(choice.step);
  }
  return "auto";
}

std::optional<resume_choice> parse_resume(std::string_view text) {
  if (text == "auto") return resume_choice{};
  if (text == "none") return resume_choice{.what = resume_choice::kind::nothing};
  std::uint64_t step = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), step);
  if (status != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
  return resume_choice{.what = resume_choice::kind::version, .step = step_id{step}};
}

} // namespace troupe
