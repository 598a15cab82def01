// Progress line: what a person sees while a job runs.
//
// On a terminal one line is rewritten in place, at most 10 times a second; elsewhere a plain line is written
// every 5 s. Milestones (a failure healed, a checkpoint written) are lines that stay.
//
// Runs on:  the event loop; the sink does not block.
// Invariants:
//   PL-1    between two rewrites lie at least 100 ms, between two plain lines at least 5 s.
//   PL-2    the newest progress is shown in the end (`finish`).
#pragma once

#include <optional>
#include <string_view>

#include "runtime/seams/clock.hpp"
#include "runtime/telemetry/story.hpp"
#include "runtime/telemetry/text_sink.hpp"

namespace troupe {

class progress_line {
public:
  enum class style : unsigned char { terminal, plain, quiet }; // quiet: milestones only

  progress_line(const clock_seam& clock, text_sink& sink, style how);
  void update(const job_progress& now);
  void milestone(std::string_view text);
  void finish();

private:
  void show();

  const clock_seam& clock_;
  text_sink& sink_;
  const style style_;
  job_progress newest_;
  bool unseen_{false};      // is `newest_` not shown yet?
  bool on_terminal_{false}; // does the cursor stand behind a progress line?
  std::optional<time_point> shown_at_;
};

} // namespace troupe
