#include <catch2/catch_test_macros.hpp>

#include "cli/chaos/chaos_report.hpp"
#include "tests/unit/chaos/chaos_runs.hpp"

namespace troupe::chaos {
namespace {

chaos_report report_of_three() {
  chaos_report report{.settings = *check({.runs = 3}, {"prog"}), .calm = *reference_of(calm_result())};
  report.runs.push_back(judge(1, struck_result(), report.calm));
  auto other = struck_result();
  other.summary["state_digest"] = "bb";
  other.summary["goodput"] = 0.5;
  report.runs.push_back(judge(2, std::move(other), report.calm));
  auto leaking = struck_result();
  leaking.leaks = {"temporary file x", "process 1 (y) in state S was left"};
  leaking.summary["goodput"] = 0.7;
  report.runs.push_back(judge(3, std::move(leaking), report.calm));
  return report;
}

TEST_CASE("chaos report: equal digests, leaks and the median are counted over all runs") {
  const auto report = report_of_three();
  CHECK(report.equal() == 2);
  CHECK(report.leaks() == 2);
  CHECK(report.goodput_median() == 0.7);
  CHECK_FALSE(report.right());
  CHECK(summary_of(report).find("2 of 3 equal digests, 2 leaks, goodput 0.70 (median), wrong: 2 runs") !=
        std::string::npos);
}

TEST_CASE("chaos report: strikes are tallied by kind, those that did not come left out") {
  const auto kinds = report_of_three().kinds();
  REQUIRE(kinds.size() == 2);
  CHECK(kinds.at("kill").due == 3);
  CHECK(kinds.at("kill").seen == 3);
  CHECK(kinds.at("kill").detected_ms == std::vector<double>{25, 25, 25});
  CHECK(kinds.at("stop").due == 3);
  CHECK(kinds.at("stop").seen == 0);
}

TEST_CASE("chaos report: a wrong run says how to run it again, and what happened") {
  const auto report = report_of_three();
  CHECK(account_of(report.runs[0], report.settings).empty());
  const auto account = account_of(report.runs[1], report.settings);
  CHECK(account.find("run 2: state_digest bb") != std::string::npos);
  CHECK(account.find("--first-run 2 --seed 1") != std::string::npos);
  CHECK(account.find("failure_detected") != std::string::npos);
}

TEST_CASE("chaos report: the JSON object says the same") {
  const auto told = nlohmann::json::parse(to_json(report_of_three()));
  CHECK(told.at("equal") == 2);
  CHECK(told.at("leaks") == 2);
  CHECK(told.at("right") == false);
  CHECK(told.at("runs").size() == 3);
  CHECK(told.at("runs")[0].at("right") == true);
  CHECK(told.at("runs")[0].at("faults").size() == 3);
  CHECK(told.at("runs")[0].at("faults")[1].at("recovered_ms") == 190);
  CHECK(told.at("runs")[1].at("findings").size() == 1);
  CHECK(told.at("runs")[2].at("leaks").size() == 2);
  CHECK(told.at("kinds")[0].at("kind") == "kill");
  CHECK(told.at("fault_free").at("workers") == 3);
}

} // namespace
} // namespace troupe::chaos
