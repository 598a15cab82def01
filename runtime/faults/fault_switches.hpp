// Fault switches: what is wrong with the outside of this process just now, and until when.
//
// Flow:     fault injector -> [switches] -> the faulty seams, which look here before they pass anything on
// Owns:     one switch for each thing that can be wrong; all are off at first.
// Runs on:  any thread; words that are read and written whole.
// Invariants:
//   FS-1    a switch that is turned on for a while is off after it, without anybody turning it off.
//   FS-2    what strikes once is taken by one call, however many ask.
// Why:      docs/design/0020-faults-at-the-seams.md
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/policy/fault.hpp"
#include "runtime/seams/clock.hpp"

namespace troupe {

class timed_switch {
public:
  void turn_on(time_point until, double factor) {
    factor_.store(factor);
    until_ns_.store(to_ns(until));
  }
  [[nodiscard]] bool on(time_point now) const { return to_ns(now) < until_ns_.load(); }
  [[nodiscard]] time_point until() const { return time_from_ns(until_ns_.load()); }
  [[nodiscard]] double factor() const { return factor_.load(); }

private:
  std::atomic<std::int64_t> until_ns_{0};
  std::atomic<double> factor_{1};
};

class single_strike {
public:
  void arm() { armed_.store(true); }
  [[nodiscard]] bool take() { return armed_.load() && armed_.exchange(false); } // FS-2

private:
  std::atomic<bool> armed_{false};
};

class fault_switches {
public:
  static constexpr double slow_factor_default = 4;
  static constexpr double clog_ms_default = 20;

  // `clock`: the true one, which no fault moves.
  explicit fault_switches(const clock_seam& clock)
      : clock_{clock} {}

  // A fault of a kind that strikes a seam.
  void turn_on(const fault& f);
  [[nodiscard]] time_point now() const { return clock_.now(); }
  // When a message that comes now may pass, in the direction of `cut`: now, or later.
  [[nodiscard]] time_point passes(const timed_switch& cut, time_point now) const;

  timed_switch slow_worker, slow_reader;           // factor: how many times as long
  timed_switch slow_storage, full_storage;         // factor of the first likewise
  timed_switch cut_in, cut_out, clog;              // factor of clog: milliseconds
  timed_switch hang;                               // before the all-reduce
  single_strike skip, nan, torn_write, path_error; // at the next opportunity
  std::atomic<std::int64_t> clock_ahead_ns{0};     // of the true clock

private:
  const clock_seam& clock_;
};

} // namespace troupe
