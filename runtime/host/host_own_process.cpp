#include "runtime/host/host_own_process.hpp"

#include <csignal>

#include <sys/resource.h>
#include <unistd.h>

#include "runtime/host/allocation_hook.hpp"

namespace troupe {
namespace {

duration to_duration(const timeval& time) {
  return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
}

} // namespace

void host_own_process::raise_signal(int signal_number) {
  ::kill(::getpid(), signal_number);
}

void host_own_process::exit_now(int code) {
  ::_exit(code);
}

process_counters host_own_process::counters() const {
  process_counters now;
  struct rusage used {};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    now.cpu = to_duration(used.ru_utime) + to_duration(used.ru_stime);
    now.page_faults = static_cast<std::uint64_t>(used.ru_minflt) + static_cast<std::uint64_t>(used.ru_majflt);
  }
  if (troupe_allocations != nullptr) {
    now.counts_allocations = true;
    troupe_allocations(&now.loop_allocations, &now.data_allocations);
  }
  return now;
}

} // namespace troupe
