#include "runtime/telemetry/progress_line.hpp"

#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/telemetry/manual_clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

long count(const std::string& text, char c) {
  return std::count(text.begin(), text.end(), c);
}

TEST_CASE("progress line: a terminal's line is rewritten at most ten times a second (PL-1)") {
  manual_clock clock;
  memory_text_sink sink;
  progress_line line{clock, sink, progress_line::style::terminal};
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    line.update({.step = step, .steps_total = 1000});
    clock.advance(1ms);
  }
  CHECK(count(sink.text(), '\r') == 10);
  CHECK(count(sink.text(), '\n') == 0);
  sink.clear();
  line.finish();
  CHECK(sink.text().find("step 1000/1000") != std::string::npos); // PL-2
  CHECK(sink.text().back() == '\n');
}

TEST_CASE("progress line: without a terminal a plain line comes every 5 s (PL-1, PL-2)") {
  manual_clock clock;
  memory_text_sink sink;
  progress_line line{clock, sink, progress_line::style::plain};
  for (std::uint64_t step = 1; step <= 120; ++step) {
    line.update({.step = step});
    clock.advance(100ms);
  }
  CHECK(count(sink.text(), '\n') == 3);
  CHECK(count(sink.text(), '\r') == 0);
  line.finish();
  CHECK(sink.text().find("step 120 ") != std::string::npos);
  line.finish();
  CHECK(count(sink.text(), '\n') == 4);
}

TEST_CASE("progress line: a milestone stays, and the progress stands below it again") {
  manual_clock clock;
  memory_text_sink sink;
  progress_line line{clock, sink, progress_line::style::terminal};
  line.milestone("started");
  CHECK(sink.text() == "started\n");
  line.update({.step = 5});
  sink.clear();
  line.milestone("worker 1 killed");
  CHECK(sink.text() == "\r\x1b[Kworker 1 killed\n" + tell(job_progress{.step = 5}));
}

TEST_CASE("progress line: quiet shows milestones only") {
  manual_clock clock;
  memory_text_sink sink;
  progress_line line{clock, sink, progress_line::style::quiet};
  line.update({.step = 5});
  line.milestone("healed");
  line.finish();
  CHECK(sink.text() == "healed\n");
}

} // namespace
} // namespace troupe
