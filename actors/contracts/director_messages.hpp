// Edges of the director's process: from its surroundings to the director, and from the director to the
// reporter.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "actors/contracts/job_records.hpp"
#include "runtime/policy/membership.hpp"
#include "runtime/seams/process.hpp"

namespace troupe {

struct start_job {
  static constexpr std::string_view wire_name = "troupe.start_job";
};
struct stop_job {
  static constexpr std::string_view wire_name = "troupe.stop_job";
  error cause;
};
struct worker_exited {
  static constexpr std::string_view wire_name = "troupe.worker_exited";
  std::shared_ptr<process_exit_handler> handler;
  process_exit how;
};
struct run_later {
  static constexpr std::string_view wire_name = "troupe.run_later";
  std::shared_ptr<task> work;
};
struct resume_point_found {
  static constexpr std::string_view wire_name = "troupe.resume_point_found";
  std::vector<job_record::checkpoint_rejected> rejected;
  expected<resume_point> result;
};
struct record_message {
  static constexpr std::string_view wire_name = "troupe.record_message";
  std::shared_ptr<const job_record_variant> what;
};
// The last record has been sent: call back once all are told.
struct reports_done {
  static constexpr std::string_view wire_name = "troupe.reports_done";
  std::shared_ptr<std::function<void()>> then;
};

} // namespace troupe
