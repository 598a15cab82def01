#include "cli/doctor/doctor_probe.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/doctor/environment_checks.hpp"
#include "cli/doctor/reduce_probe.hpp"
#include "runtime/policy/job_settings.hpp"
#include "transports/nccl/gpu_libraries.hpp"
#include "transports/ucx/lanes.hpp"

namespace troupe::doctor {
namespace {

constexpr std::array<const char*, 4> dataset_files{"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                                   "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

bool loopback_is_up() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return false;
  bool up = false;
  for (const auto* one = all; one != nullptr; one = one->ifa_next)
    if (std::strcmp(one->ifa_name, "lo") == 0 && (one->ifa_flags & IFF_UP) != 0) up = true;
  ::freeifaddrs(all);
  return up;
}

std::map<std::string, std::string> environment_of_interest() {
  std::map<std::string, std::string> out;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string entry{*each};
    const auto equals = entry.find('=');
    if (equals != std::string::npos && of_interest(std::string_view{entry}.substr(0, equals)))
      out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return out;
}

void probe_shm(doctor_facts& into) {
  struct statvfs found {};
  if (::statvfs("/dev/shm", &found) != 0) return;
  into.shm_total = std::uint64_t{found.f_blocks} * found.f_frsize;
  into.shm_free = std::uint64_t{found.f_bavail} * found.f_frsize;
}

void probe_open_files(doctor_facts& into) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  into.open_files_soft = limit.rlim_cur;
  into.open_files_hard = limit.rlim_max;
}

void probe_memory(doctor_facts& into) {
  std::ifstream file{"/proc/meminfo"};
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line};
    std::string name;
    std::uint64_t kib = 0;
    words >> name >> kib;
    if (name == "MemTotal:") into.memory_total = kib * 1024;
    if (name == "MemAvailable:") into.memory_available = kib * 1024;
  }
  std::ifstream{"/proc/sys/vm/overcommit_memory"} >> into.overcommit;
}

void probe_dataset(doctor_facts& into, const std::string& directory) {
  into.dataset_directory = directory;
  std::error_code failed;
  for (const std::string name : dataset_files) {
    const auto path = std::filesystem::path{directory} / name;
    if (!std::filesystem::exists(path, failed) && !std::filesystem::exists(path.string() + ".gz", failed))
      into.dataset_missing.push_back(name);
  }
}

gpu_facts probe_gpu(const std::string& device) {
  gpu_facts out;
  const auto asked = gpu_of(device);
  if (asked) out.asked = device;
  const auto loaded = gpu_libraries::load(gpu_library_names::from_environment(), asked.value_or(0));
  if (!loaded) {
    out.missing = loaded.failure().text;
    return out;
  }
  out.found = std::to_string(loaded->devices) + (loaded->devices == 1 ? " device" : " devices") + ", CUDA " +
              cuda_version_text(loaded->cuda_version) + ", NCCL " + nccl::version_text(loaded->has.version) +
              (loaded->fake ? " (FAKE libraries)" : "");
  return out;
}

} // namespace

doctor_facts probe_machine(const probe_settings& settings) {
  doctor_facts out;
  out.transport = settings.transport;
  out.libraries = library_versions();
  out.ucx_resources = ucx_resources();
  out.loopback_up = loopback_is_up();
  out.environment = environment_of_interest();
  probe_shm(out);
  probe_open_files(out);
  probe_memory(out);
  probe_dataset(out, settings.data);
  if (auto path = probe_path(settings.transport))
    out.path = *path;
  else
    out.path_failure = path.failure().text;
  out.reduce = probe_reduce(settings.workers);
  out.gpu = probe_gpu(settings.device); // last: no process is forked once CUDA was asked
  return out;
}

} // namespace troupe::doctor
