#include "runtime/faults/fault_switches.hpp"

namespace troupe {

void fault_switches::turn_on(const fault& f) {
  const auto until = f.lasting ? now() + *f.lasting : time_point::max();
  switch (f.kind) {
  case fault_kind::slow: {
    auto& slow = f.target.where == fault_target::place::prefetcher ? slow_reader : slow_worker;
    return slow.turn_on(until, f.factor.value_or(slow_factor_default));
  }
  case fault_kind::disk_slow:
    return slow_storage.turn_on(until, f.factor.value_or(slow_factor_default));
  case fault_kind::disk_full:
    return full_storage.turn_on(until, 1);
  case fault_kind::clog:
    return clog.turn_on(until, f.factor.value_or(clog_ms_default));
  case fault_kind::cut:
    if (f.way.value_or(fault_way::both) != fault_way::out) cut_in.turn_on(until, 1);
    if (f.way.value_or(fault_way::both) != fault_way::in) cut_out.turn_on(until, 1);
    return;
  case fault_kind::hang_in_collective:
    return hang.turn_on(until, 1);
  case fault_kind::skip_collective:
    return skip.arm();
  case fault_kind::nan:
    return nan.arm();
  case fault_kind::torn_write:
    return torn_write.arm();
  case fault_kind::path_error:
    return path_error.arm();
  case fault_kind::clock_step:
    clock_ahead_ns.fetch_add(f.lasting.value_or(duration{0}).count());
    return;
  default:
    invariant_broken("fault switches: only faults of a seam are turned on");
  }
}

time_point fault_switches::passes(const timed_switch& cut, time_point now) const {
  if (cut.on(now)) return cut.until();
  if (clog.on(now)) return now + duration{static_cast<duration::rep>(clog.factor() * 1e6)};
  return now;
}

} // namespace troupe
