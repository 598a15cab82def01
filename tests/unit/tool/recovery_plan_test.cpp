#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "bench/recovery/recovery_plan.hpp"

namespace troupe::bench {
namespace {

using nlohmann::json;

json failure(double detected, double recovered) {
  return {{"detected_ms", detected}, {"recovered_ms", recovered}, {"steps_lost", 1}, {"cause", "killed"}};
}

// Three survivors each; the last is out after so many milliseconds.
std::vector<json> left_after(const std::vector<double>& ms) {
  std::vector<json> out{{{"event", "generation_started"}, {"t", 0.5}}};
  double now = 1;
  for (const auto one : ms) {
    out.push_back({{"event", "failure_detected"}, {"t", now}});
    for (const double part : {0.25, 0.5, 1.0})
      out.push_back({{"event", "collective_aborted"}, {"t", now + part * one / 1000}});
    out.push_back({{"event", "generation_started"}, {"t", now + 0.25}});
    now += 1;
  }
  return out;
}

TEST_CASE("recovery plan: each worker is struck once a run, as often as rows need") {
  recovery_scenario what{.fault = "SIGSTOP", .workers = 4, .program = "job", .strikes_min = 10};
  CHECK(runs_needed(what) == 3);
  what.workers = 2;
  CHECK(runs_needed(what) == 5);
  CHECK(strike_arguments(what) ==
        std::vector<std::string>{"--workers", "2", "--steps", "500", "--detect-after", "1s", "--fault",
                                 "stop:worker=0@step=100", "--fault", "stop:worker=1@step=250"});
  what.fault = "SIGKILL";
  CHECK(strike_arguments(what)[7] == "kill:worker=0@step=100");
}

TEST_CASE("recovery plan: a run that did not have its failures is no measurement") {
  const recovery_scenario what{.fault = "SIGKILL", .workers = 2, .program = "job"};
  strike_samples samples;
  CHECK_FALSE(
      add_run(samples, what, {{"failures", {failure(1, 2)}}, {"survivors_kept", true}}, left_after({3})));
  auto lost = failure(1, 2);
  lost["recovered_ms"] = nullptr;
  CHECK_FALSE(add_run(samples, what, {{"failures", {failure(1, 2), lost}}, {"survivors_kept", true}},
                      left_after({3, 3})));
  CHECK_FALSE(add_run(samples, what, {{"failures", {failure(1, 2), failure(1, 2)}}, {"survivors_kept", true}},
                      left_after({3})));
}

TEST_CASE("recovery plan: a row has the contract's fields") {
  const recovery_scenario what{.fault = "SIGKILL", .workers = 2, .program = "job", .state_bytes = 1024};
  strike_samples samples;
  REQUIRE(add_run(samples, what, {{"failures", {failure(1, 20), failure(3, 40)}}, {"survivors_kept", true}},
                  left_after({2, 4})));
  const auto made = row_of(what, samples, "troupe");
  CHECK(made.at("fault") == "SIGKILL");
  CHECK(made.at("workers") == 2);
  CHECK(made.at("state_bytes") == 1024);
  CHECK(made.at("detected_ms").at("p50") == 1);
  CHECK(made.at("recovered_ms").at("p99") == 40);
  CHECK(made.at("left_ms").at("max").get<double>() == Catch::Approx(4));
  CHECK(made.at("steps_lost").at("max") == 1);
  CHECK(made.at("survivors_kept") == true);
  CHECK(made.at("strikes") == 2);
}

} // namespace
} // namespace troupe::bench
