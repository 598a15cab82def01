#include "runtime/telemetry/event_log.hpp"

#include <array>

#include <nlohmann/json.hpp>

#include "runtime/base/invariant.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 23> names{"job_started",
                                                 "worker_started",
                                                 "worker_ready",
                                                 "path_opened",
                                                 "generation_started",
                                                 "first_step_applied",
                                                 "generation_ended",
                                                 "failure_detected",
                                                 "collective_aborted",
                                                 "state_sent",
                                                 "checkpoint_taken",
                                                 "checkpoint_written",
                                                 "checkpoint_rejected",
                                                 "checkpoint_failed",
                                                 "resumed",
                                                 "resize_requested",
                                                 "path_interrupted",
                                                 "straggler",
                                                 "hang",
                                                 "health",
                                                 "nan",
                                                 "restart_budget_spent",
                                                 "job_finished"};
static_assert(names.size() == static_cast<std::size_t>(event_kind::job_finished) + 1);

constexpr std::array<std::string_view, 8> standard_fields{"t",    "event", "generation", "step",
                                                          "rank", "pid",   "actor",      "cause"};

bool is_standard(std::string_view name) {
  for (const auto field : standard_fields) {
    if (field == name) return true;
  }
  return false;
}

} // namespace

std::string_view to_string(event_kind kind) {
  return names.at(static_cast<std::size_t>(kind));
}

event_log::event_log(const clock_seam& clock, text_sink& sink)
    : clock_{clock}
    , sink_{sink}
    , start_{clock.now()} {}

void event_log::record(const event& what, std::initializer_list<event_field> extra) {
  json line;
  line["t"] = to_s(clock_.now() - start_);
  line["event"] = to_string(what.kind);
  line["generation"] = what.generation.value();
  if (what.step) line["step"] = what.step->value();
  if (what.rank) line["rank"] = what.rank->value();
  if (what.pid) line["pid"] = *what.pid;
  if (!what.actor.empty()) line["actor"] = what.actor;
  if (!what.cause.empty()) line["cause"] = what.cause;
  for (const auto& field : extra) {
    invariant(!is_standard(field.name), "EV-2: an extra field never takes the name of a standard one");
    std::visit([&](const auto& value) { line[std::string{field.name}] = value; }, field.value);
  }
  // Bytes that are not UTF-8 are replaced, never thrown over (EV-1).
  auto text = line.dump(-1, ' ', false, json::error_handler_t::replace);
  text += '\n';
  sink_.write(text);
  ++recorded_;
}

} // namespace troupe
