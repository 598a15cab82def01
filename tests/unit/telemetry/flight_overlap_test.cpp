#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/telemetry/flight_overlap.hpp"
#include "tests/unit/telemetry/flight_fixture.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

// A step: two parts at 0 and 2 ms, done at 3 and 5 ms; backward ends at 4 ms, the sum at 7 ms.
void run_step(flight::rank& one, manual_clock& clock, std::uint64_t step) {
  one.inner->parts.clear();
  one.box->step_started = step;
  one.reduce->begin({32, 64}, {});
  clock.advance(2ms);
  one.reduce->begin({16, 32}, {});
  clock.advance(1ms);
  one.inner->parts[0]();
  clock.advance(1ms);
  one.enter(step);
  clock.advance(1ms);
  one.inner->parts[1]();
  clock.advance(2ms);
  one.end(step);
}

TEST_CASE("flight overlap: of each step when parts began and ended, and what of the sum was hidden") {
  manual_clock clock;
  flight::rank one{clock, 1, 2, 64};
  for (std::uint64_t step = 1; step <= 3; ++step)
    run_step(one, clock, step);
  one.enter(4); // without parts
  one.end(4);
  one.reduce->begin({16, 64}, {}); // did not end (FO-1)
  one.enter(5);
  const auto dump = flight::dump_of(one, 1, 2, clock, flight_writer::worker, "asked");
  const auto steps = overlap_of(*parse_flight_dump(to_text(dump)), 2);
  REQUIRE(steps.size() == 2);
  CHECK((steps[0].step == step_id{2} && steps[1].step == step_id{3} && steps[0].rank == rank_id{1}));
  CHECK(steps[0].parts.size() == 2);
  CHECK((steps[0].parts[1].began == 3ms && steps[0].parts[1].ended == 5ms)); // after the first
  CHECK((steps[0].backward_end == 4ms && steps[0].sum_end == 7ms));
  CHECK(steps[0].hidden() == Catch::Approx(4.0 / 7.0)); // 3 of 3 + 2 + 2 ms were waited for
  CHECK(to_text(steps[1]) == "step 3 rank 1: parts 0.00-3.00 ms (128B), 3.00-5.00 ms (64B); backward ends at "
                             "4.00 ms, the sum at 7.00 ms: 57 % hidden");
}

TEST_CASE("flight overlap: a step that the ring has partly lost is left out (FO-1)") {
  manual_clock clock;
  flight::rank one{clock, 0, 2, 64};
  constexpr std::uint64_t run = 500; // three records a step
  for (std::uint64_t step = 1; step <= run; ++step)
    run_step(one, clock, step);
  const auto dump = flight::dump_of(one, 0, 2, clock, flight_writer::worker, "asked");
  const auto steps = overlap_of(dump, 10'000);
  REQUIRE(!steps.empty());
  CHECK(steps.size() <= flight_records_max / 3);
  CHECK(steps.back().step == step_id{run});
  for (const auto& step : steps)
    CHECK(step.parts.size() == 2);
}

} // namespace
} // namespace troupe
