#include "cli/launch/launch_core.hpp"

#include <csignal>
#include <utility>

namespace troupe {
namespace {

constexpr int signalled_base = 128; // a shell's convention

bool ends_programs(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

} // namespace

int exit_code_of(const process_exit& end) {
  return end.signalled ? signalled_base + end.code : end.code;
}

launch_core::actions launch_core::on_exit(std::uint32_t rank, const process_exit& end) {
  auto& place = ends_.at(rank);
  if (place) return {};
  place = end;
  ++ended_;
  actions out{.over = over()};
  if (exit_code_of(end) == 0) return out;
  if (!first_failure_) first_failure_ = {rank, end};
  if (ending_ || out.over) return out;
  ending_ = true;
  out.signal_all = SIGTERM;
  out.arm_grace = true;
  return out;
}

launch_core::actions launch_core::on_signal(int number) {
  if (!ends_programs(number)) return {.signal_all = number};
  const bool again = signalled_ != 0;
  if (!again) signalled_ = number;
  if (again) return {.signal_all = SIGKILL};
  if (std::exchange(ending_, true)) return {.signal_all = number};
  return {.signal_all = number, .arm_grace = true};
}

launch_core::actions launch_core::on_grace_over() {
  return {.signal_all = over() ? 0 : SIGKILL};
}

int launch_core::exit_code() const {
  if (signalled_ != 0) return signalled_base + signalled_;
  return first_failure_ ? exit_code_of(first_failure_->end) : 0;
}

} // namespace troupe
