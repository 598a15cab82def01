// Event log: what happened in a job, one JSON object a line (CONTRACT: events).
//
// Flow:     director, checkpointer -> record -> [event log] -> text sink
// Runs on:  its caller's thread (the event loop); never blocks, the sink sees to that.
// Invariants:
//   EV-1    every line is one whole JSON object, whatever bytes a cause contains.
//   EV-2    an extra field never takes the name of a standard one.
//   EV-3    `t` never decreases.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <variant>

#include "runtime/base/ids.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/telemetry/text_sink.hpp"

namespace troupe {

enum class event_kind : unsigned char {
  job_started,
  worker_started,
  worker_ready,
  path_opened,
  generation_started,
  first_step_applied, // of a generation: it makes progress
  generation_ended,
  failure_detected,
  collective_aborted,
  state_sent,
  checkpoint_taken,
  checkpoint_written,
  checkpoint_rejected,
  checkpoint_failed,
  resumed,
  resize_requested,
  path_interrupted,
  straggler,
  hang,
  health,
  nan,
  restart_budget_spent,
  job_finished
};

[[nodiscard]] std::string_view to_string(event_kind kind);

// What applies is given; the rest is absent from the line.
struct event {
  event_kind kind{};
  generation_id generation{};
  std::optional<step_id> step{};
  std::optional<rank_id> rank{};
  std::optional<std::int64_t> pid{};
  std::string_view actor{};
  std::string_view cause{};
};

struct event_field {
  std::string_view name;
  std::variant<std::int64_t, std::uint64_t, double, bool, std::string_view> value;
};

class event_log {
public:
  // `t` counts from this moment. Clock and sink outlive the log.
  event_log(const clock_seam& clock, text_sink& sink);
  void record(const event& what, std::initializer_list<event_field> extra = {});
  [[nodiscard]] std::uint64_t recorded() const { return recorded_; }

private:
  const clock_seam& clock_;
  text_sink& sink_;
  time_point start_;
  std::uint64_t recorded_{0};
};

} // namespace troupe
