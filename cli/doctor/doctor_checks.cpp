#include "cli/doctor/doctor_checks.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/doctor/environment_checks.hpp"
#include "cli/doctor/reduce_checks.hpp"

namespace troupe::doctor {
namespace {

constexpr double half_rtt_us_usual = 500;
constexpr double bytes_per_s_usual = 200e6;
constexpr std::uint64_t mib = 1U << 20U;
constexpr std::uint64_t shm_free_min = 16 * mib;
constexpr std::uint64_t shm_free_usual = 256 * mib;
constexpr std::uint64_t open_files_min = 256; // two connections and a few files for each of a few workers
constexpr std::uint64_t open_files_usual = 1024;
constexpr std::uint64_t memory_min = 256 * mib;
constexpr std::uint64_t memory_usual = 1024 * mib;
constexpr int overcommit_strict = 2;

finding ok(std::string text) {
  return {.text = std::move(text)};
}
finding warn(std::string text, std::string remedy) {
  return {{}, verdict::warn, std::move(text), std::move(remedy)};
}
finding fail(std::string text, std::string remedy) {
  return {{}, verdict::fail, std::move(text), std::move(remedy)};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& one : words)
    text += (text.empty() ? "" : ", ") + one;
  return text;
}

std::string in_mib(std::uint64_t bytes) {
  return std::to_string(bytes / mib) + " MiB";
}

template <class... Values>
std::string format(const char* form, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

bool starts(const std::string& text, std::string_view with) {
  return text.starts_with(with);
}

bool any_shared_memory(const std::vector<std::string>& names) {
  return std::ranges::any_of(names,
                             [](const auto& one) { return starts(one, "sysv/") || starts(one, "posix/"); });
}

finding judge_libraries(const doctor_facts& facts) {
  std::vector<std::string> told;
  std::vector<std::string> differ;
  for (const auto& one : facts.libraries) {
    told.push_back(one.name + " " + (one.loaded.empty() ? one.built : one.loaded));
    if (!one.loaded.empty() && one.loaded != one.built)
      differ.push_back(one.name + " " + one.loaded + " is loaded, " + one.built + " was built against");
  }
  if (differ.empty()) return ok(joined(told));
  return warn(joined(differ), "build again on this machine (cmake --build --preset release)");
}

finding judge_loopback(const doctor_facts& facts) {
  if (facts.loopback_up) return ok("lo is up");
  return fail("the network device lo is down", "ip link set lo up");
}

finding judge_transports(const doctor_facts& facts) {
  const auto found = joined(facts.ucx_resources);
  if (facts.ucx_resources.empty())
    return fail("UCX finds no transport", "install the modules of UCX (scripts/setup), and see ucx_info -d");
  if (std::ranges::find(facts.ucx_resources, "tcp/lo") == facts.ucx_resources.end())
    return fail("UCX has no tcp on lo, only " + found, "ip link set lo up, and see ucx_info -d");
  if (facts.transport == "shm" && !any_shared_memory(facts.ucx_resources))
    return fail("UCX has no shared memory (sysv, posix), only " + found, "use --transport tcp");
  return ok(found);
}

finding judge_path(const doctor_facts& facts) {
  if (!facts.path)
    return fail("two processes cannot talk: " + facts.path_failure, "look at the lines above; ucx_info -d");
  const auto lanes = joined(facts.path->lanes);
  const auto tcp = [](const auto& one) { return starts(one, "tcp/"); };
  if (facts.path->lanes.empty())
    return warn("UCX does not say which lanes it chose", "use the UCX that scripts/setup installs");
  if (facts.transport == "tcp" && !std::ranges::all_of(facts.path->lanes, tcp))
    return fail("UCX chose " + lanes + ", asked for tcp", "unset what sets UCX options");
  if (facts.transport == "shm" && !any_shared_memory(facts.path->lanes))
    return warn("UCX chose " + lanes + ", no shared memory", "use --transport tcp, which this is");
  return ok("between two processes: " + lanes);
}

finding judge_half_rtt(const doctor_facts& facts) {
  if (!facts.path) return fail("not measured", "mend the path first");
  const auto text = format("8 B half round trip %.1f us", facts.path->half_rtt_us);
  if (facts.path->half_rtt_us <= half_rtt_us_usual) return ok(text);
  return warn(text + format(", more than the usual %.0f us", half_rtt_us_usual),
              "free the processors of other work, or raise --detect-after");
}

finding judge_bandwidth(const doctor_facts& facts) {
  if (!facts.path) return fail("not measured", "mend the path first");
  const auto text = format("1 MiB transfers %.2f GB/s", facts.path->bytes_per_s / 1e9);
  if (facts.path->bytes_per_s >= bytes_per_s_usual) return ok(text);
  return warn(text + format(", less than the usual %.1f GB/s", bytes_per_s_usual / 1e9),
              "free the processors of other work; replacements get their state this slowly");
}

finding judge_gpus(const doctor_facts& facts) {
  const auto& gpu = facts.gpu;
  if (!gpu.found.empty()) return ok(gpu.found);
  if (gpu.asked.empty())
    return ok("not asked for" +
              (gpu.missing.empty() ? "" : ": " + gpu.missing.substr(0, gpu.missing.find("; "))));
  const auto cut = std::min(gpu.missing.find("; "), gpu.missing.size());
  return fail(gpu.asked + ": " + gpu.missing.substr(0, cut),
              cut == gpu.missing.size() ? "use --device cpu"
                                        : gpu.missing.substr(cut + 2) + ", or use --device cpu");
}

finding judge_shm(const doctor_facts& facts) {
  if (!facts.shm_total || !facts.shm_free)
    return fail("/dev/shm is not there", "mount -t tmpfs tmpfs /dev/shm (containers: --shm-size=1g)");
  const auto text = in_mib(*facts.shm_free) + " of " + in_mib(*facts.shm_total) + " free in /dev/shm";
  const std::string remedy = "mount -o remount,size=1g /dev/shm (containers: --shm-size=1g)";
  if (*facts.shm_free < shm_free_min) return fail(text + ", at least " + in_mib(shm_free_min), remedy);
  if (*facts.shm_free < shm_free_usual) return warn(text + ", better " + in_mib(shm_free_usual), remedy);
  return ok(text);
}

finding judge_open_files(const doctor_facts& facts) {
  const auto text = std::to_string(facts.open_files_soft) + " files may be open";
  const bool possible = facts.open_files_hard >= open_files_usual;
  const auto remedy = possible ? "ulimit -n " + std::to_string(open_files_usual)
                               : "raise the hard limit (limits.conf, or LimitNOFILE= of the service)";
  if (facts.open_files_soft < open_files_min)
    return fail(text + ", at least " + std::to_string(open_files_min), remedy);
  if (facts.open_files_soft < open_files_usual)
    return warn(text + ", better " + std::to_string(open_files_usual), remedy);
  return ok(text);
}

finding judge_memory(const doctor_facts& facts) {
  auto text = in_mib(facts.memory_available) + " of " + in_mib(facts.memory_total) + " available";
  if (facts.memory_available < memory_min)
    return fail(text + ", at least " + in_mib(memory_min), "end other programs, or use a larger machine");
  if (facts.memory_available < memory_usual)
    return warn(text + ", better " + in_mib(memory_usual), "end other programs, or use a larger machine");
  if (facts.overcommit == overcommit_strict)
    return warn(text + ", and the kernel promises no more than there is (vm.overcommit_memory=2)",
                "sysctl vm.overcommit_memory=0; else a restart next to full memory may fail");
  return ok(text);
}

finding judge_dataset(const doctor_facts& facts) {
  if (facts.dataset_missing.empty()) return ok("Fashion-MNIST in " + facts.dataset_directory);
  return warn("not in " + facts.dataset_directory + ": " + joined(facts.dataset_missing),
              "scripts/setup installs the main example's data; or name its folder with --data");
}

} // namespace

std::string_view to_string(verdict what) {
  return what == verdict::ok ? "ok" : what == verdict::warn ? "warn" : "FAIL";
}

const std::vector<check>& all_checks() {
  static const std::vector<check> table{
      {"libraries", judge_libraries},
      {"loopback device", judge_loopback},
      {"UCX transports", judge_transports},
      {"UCX environment", judge_ucx_environment},
      {"lanes", judge_path},
      {"message time", judge_half_rtt},
      {"bandwidth", judge_bandwidth},
      {"all-reduce", judge_reduce},
      {"GPUs", judge_gpus},
      {"master address", judge_master_address},
      {"ranks", judge_ranks},
      {"shared memory", judge_shm},
      {"open files", judge_open_files},
      {"memory", judge_memory},
      {"dataset", judge_dataset},
  };
  return table;
}

std::vector<finding> examine(const doctor_facts& facts) {
  std::vector<finding> out;
  for (const auto& each : all_checks()) {
    out.push_back(each.judge(facts));
    out.back().check = each.name;
  }
  return out;
}

bool healthy(const std::vector<finding>& findings) {
  return std::ranges::none_of(findings, [](const finding& one) { return one.what == verdict::fail; });
}

std::string to_text(const std::vector<finding>& findings) {
  std::size_t width = 0;
  for (const auto& one : findings)
    width = std::max(width, one.check.size());
  std::string text;
  for (const auto& one : findings) {
    const std::string word{to_string(one.what)};
    text += word + std::string(6 - word.size(), ' ') + one.check +
            std::string(width + 2 - one.check.size(), ' ') + one.text +
            (one.remedy.empty() ? "" : "; remedy: " + one.remedy) + "\n";
  }
  return text;
}

std::string to_json(const std::vector<finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& one : findings)
    list.push_back(
        {{"check", one.check},
         {"verdict", to_string(one.what)},
         {"text", one.text},
         {"remedy", one.remedy.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(one.remedy)}});
  return nlohmann::ordered_json{{"healthy", healthy(findings)}, {"checks", list}}.dump(
      2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace troupe::doctor
