#include <cmath>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "runtime/train/schedule.hpp"

namespace troupe {
namespace {

using Catch::Approx;

TEST_CASE("schedule: constant and step decay") {
  CHECK(rate_at(constant{0.3F}, 0) == 0.3F);
  CHECK(rate_at(constant{0.3F}, 1000000) == 0.3F);
  const step_decay decay{.start = 0.8F, .factor = 0.5F, .every_steps = 10};
  CHECK(rate_at(decay, 9) == 0.8F);
  CHECK(rate_at(decay, 10) == 0.4F);
  CHECK(rate_at(decay, 35) == 0.1F);
}

TEST_CASE("schedule: cosine warms up to its peak, falls to its floor, and stays there") {
  const cosine s{.peak = 0.1F, .warmup_steps = 100, .floor = 0.01F, .total_steps = 1100};
  CHECK(rate_at(s, 0) == Approx(0.001));
  CHECK(rate_at(s, 49) == Approx(0.05));
  CHECK(rate_at(s, 99) == 0.1F);
  CHECK(rate_at(s, 100) == 0.1F);
  CHECK(rate_at(s, 600) == Approx(0.055));
  CHECK(rate_at(s, 1099) == Approx(0.01).epsilon(1e-4));
  CHECK(rate_at(s, 1100) == 0.01F);
  CHECK(rate_at(s, 5000) == 0.01F);
  for (std::uint64_t step = 100; step < 1100; ++step)
    CHECK(rate_at(s, step + 1) <= rate_at(s, step));
}

TEST_CASE("schedule: the job's length fills in what is open") {
  CHECK(std::get<cosine>(resolved(cosine{}, 600)).total_steps == 600);
  CHECK(std::get<cosine>(resolved(cosine{.total_steps = 50}, 600)).total_steps == 50);
  const cosine longer{.warmup_steps = 100, .total_steps = 50}; // ends while it still rises
  CHECK(rate_at(longer, 49) == Approx(0.05));
  CHECK(rate_at(longer, 100) == 0.0F);
}

TEST_CASE("schedule: a bad setting is named with what is accepted") {
  CHECK(validate(constant{NAN}).failure().text == "learning rate: rate must be a finite number, at least 0");
  CHECK(validate(cosine{.peak = -1}).failure().text.find("peak") != std::string::npos);
  CHECK(validate(cosine{.peak = 0.1F, .floor = 0.2F}).failure().text.find("floor") != std::string::npos);
  CHECK(validate(step_decay{.every_steps = 0}).failure().text.find("every_steps") != std::string::npos);
  CHECK(validate(cosine{}).has_value());
}

TEST_CASE("schedule: its text tells settings apart") {
  CHECK(text_of(constant{0.1F}) == "constant(rate=0.1)");
  CHECK(text_of(cosine{.total_steps = 600}) == "cosine(peak=0.1,warmup_steps=0,floor=0,total_steps=600)");
  CHECK(text_of(step_decay{}) == "step_decay(start=0.1,factor=0.1,every_steps=1000)");
}

} // namespace
} // namespace troupe
