#include "runtime/telemetry/story.hpp"

#include <limits>

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST_CASE("story: a healed failure is one sentence") {
  const failure_story killed{.rank = 1,
                             .pid = 123,
                             .what = "killed by SIGKILL",
                             .step = 200,
                             .detected = 4ms,
                             .recovered = 180ms,
                             .steps_lost = 1,
                             .source = "peer"};
  CHECK(tell_recovered(killed) ==
        "worker 1 (pid 123) killed by SIGKILL at step 200: detected in 4 ms, restored from a peer, training "
        "again after 180 ms, 1 step lost");
  CHECK(tell_detected(killed) == "worker 1 (pid 123) killed by SIGKILL at step 200: detected in 4 ms");
  const failure_story early{
      .rank = 0, .what = "exit code 3", .detected = 1500ms, .recovered = 2min, .source = "disk"};
  CHECK(tell_recovered(early) ==
        "worker 0 exit code 3 before the first step: detected in 1.5 s, restored from a checkpoint on disk, "
        "training again after 2 min 0 s, no step lost");
}

TEST_CASE("story: progress names only what is known") {
  CHECK(tell(job_progress{.step = 120,
                          .steps_total = 600,
                          .loss = 0.43119,
                          .samples_per_s = 51234,
                          .workers = 2,
                          .generation = 1,
                          .left = 12s}) ==
        "step 120/600 (20 %)  loss 0.4312  51.2k samples/s  2 workers  generation 1  12 s left");
  CHECK(tell(job_progress{.step = 7, .workers = 1}) == "step 7  0 samples/s  1 worker  generation 0");
}

TEST_CASE("story: numbers read as people write them") {
  CHECK(tell_count(0) == "0");
  CHECK(tell_count(3.21) == "3.2");
  CHECK(tell_count(999) == "999");
  CHECK(tell_count(999.7) == "1.0k");
  CHECK(tell_count(512345) == "512k");
  CHECK(tell_count(3.2e6) == "3.2M");
  CHECK(tell_count(5e13) == "50000G");
  CHECK(tell_count(std::numeric_limits<double>::quiet_NaN()) == "?");
  CHECK(tell_duration(350us) == "0.35 ms");
  CHECK(tell_duration(999600us) == "1.0 s");
  CHECK(tell_duration(59700ms) == "1 min 0 s");
  CHECK(tell_duration(3h + 5min) == "3 h 5 min");
  CHECK(tell_number_of(2, "step") == "2 steps");
}

} // namespace
} // namespace troupe
