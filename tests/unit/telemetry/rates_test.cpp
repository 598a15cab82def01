#include <cmath>

#include <catch2/catch_test_macros.hpp>

#include "runtime/telemetry/goodput.hpp"
#include "runtime/telemetry/rate_meter.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

time_point at(duration since_start) {
  return time_point{since_start};
}

TEST_CASE("goodput: waiting, lost and repeated steps are not good (GP-1)") {
  goodput account;
  account.training_started(at(2s)); // two seconds of start-up
  account.step_committed(step_id{1}, at(3s));
  account.step_committed(step_id{2}, at(4s));
  // A failure: one second lost, resumed from step 1, step 2 again.
  account.training_started(at(6s));
  account.step_committed(step_id{2}, at(7s));
  account.step_committed(step_id{3}, at(8s));
  CHECK(account.good_time() == 3s);
  CHECK(account.ratio(8s) == 3.0 / 8.0);
}

TEST_CASE("goodput: the ratio stays in [0, 1] (GP-2)") {
  goodput account;
  CHECK(account.ratio(0s) == 0.0);
  account.training_started(at(0s));
  account.step_committed(step_id{1}, at(5s));
  CHECK(account.ratio(4s) == 1.0);
}

TEST_CASE("rate meter: a steady rate is exact from the first interval on") {
  rate_meter meter;
  CHECK(meter.per_second() == 0.0);
  for (int i = 0; i <= 50; ++i) {
    meter.update(10.0 * i, at(i * 100ms));
    if (i > 0) CHECK(std::abs(meter.per_second() - 100.0) < 1e-6);
  }
}

TEST_CASE("rate meter: a new rate wins within a few time constants; a total that went back is no rate") {
  rate_meter meter;
  meter.update(0, at(0s));
  meter.update(1000, at(1s));
  double total = 1000;
  for (int i = 2; i < 30; ++i)
    meter.update(total += 10, at(i * 1s));
  CHECK(std::abs(meter.per_second() - 10.0) < 10.0);
  const auto before = meter.per_second();
  meter.update(0, at(31s));
  CHECK(meter.per_second() == before);
}

} // namespace
} // namespace troupe
