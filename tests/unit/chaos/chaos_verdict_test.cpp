#include <csignal>

#include <catch2/catch_test_macros.hpp>

#include "cli/chaos/timeline.hpp"
#include "tests/unit/chaos/chaos_runs.hpp"

namespace troupe::chaos {
namespace {

reference calm() {
  return *reference_of(calm_result());
}

TEST_CASE("chaos verdict: the fault-free run says workers, length and digests") {
  const auto found = reference_of(calm_result());
  REQUIRE(found);
  CHECK(found->workers == 3);
  CHECK(found->length == 9s);
  CHECK(found->state_digest == "aa");
  CHECK(found->weights_digest == "waa");
}

TEST_CASE("chaos verdict: a fault-free run that proves nothing is refused, with the reason (CV-2)") {
  const auto refused = [](auto change, const char* reason) {
    auto run = calm_result();
    change(run);
    const auto found = reference_of(run);
    REQUIRE_FALSE(found);
    INFO(found.failure().text);
    CHECK(found.failure().text.find(reason) != std::string::npos);
  };
  refused([](run_result& r) { r.attempts[0].end = {1, false, 5}; }, "exit code 5");
  refused([](run_result& r) { r.summary = nullptr; }, "no summary");
  refused([](run_result& r) { r.summary["state_digest"] = ""; }, "no state_digest");
  refused([](run_result& r) { r.attempts[0].events.clear(); }, "job_started");
  refused([](run_result& r) { r.hung = {"12 (x) in state S"}; }, "did not end");
  refused([](run_result& r) { r.leaks = {"temporary file x"}; }, "temporary file x");
}

TEST_CASE("chaos verdict: a run with the digests of the fault-free run is right (CV-1)") {
  const auto verdict = judge(4, struck_result(), calm());
  CHECK(verdict.right());
  CHECK(verdict.exit == "0");
  CHECK(verdict.state_equal);
  CHECK(verdict.weights_equal);
  CHECK(verdict.failures == 1);
}

TEST_CASE("chaos verdict: a failure is put down to the last strike at its rank before it") {
  const auto verdict = judge(4, struck_result(), calm());
  CHECK(verdict.outcomes[0].due);
  CHECK_FALSE(verdict.outcomes[0].seen);
  CHECK(verdict.outcomes[1].seen);
  CHECK(verdict.outcomes[1].detected_ms == 25);
  CHECK(verdict.outcomes[1].recovered_ms == 190);
  CHECK_FALSE(verdict.outcomes[2].due);
}

TEST_CASE("chaos verdict: a cause that does not fit a strike is put down to another, or to none") {
  auto run = struck_result();
  run.attempts[0].events.insert(run.attempts[0].events.begin() + 1, detected(1.9, 1, 900, "no heartbeat"));
  run.attempts[0].events.insert(run.attempts[0].events.begin() + 2, resumed(1.95, 1, 950));
  run.attempts[0].events.insert(run.attempts[0].events.begin() + 3, detected(1.96, 1, 3, "exit code 4"));
  const auto verdict = judge(4, std::move(run), calm());
  CHECK(verdict.failures == 3);
  CHECK(verdict.outcomes[0].detected_ms == 900);
  CHECK(verdict.outcomes[0].recovered_ms == 950);
  CHECK(verdict.outcomes[1].detected_ms == 25);
}

TEST_CASE("chaos verdict: what differs is named, with both values (CV-2)") {
  const auto finding = [](auto change, const char* text) {
    auto run = struck_result();
    change(run);
    const auto verdict = judge(4, std::move(run), calm());
    REQUIRE_FALSE(verdict.right());
    std::string all;
    for (const auto& one : verdict.findings)
      all += one + "\n";
    for (const auto& one : verdict.leaks)
      all += one + "\n";
    INFO(all);
    CHECK(all.find(text) != std::string::npos);
  };
  finding([](run_result& r) { r.summary["state_digest"] = "bb"; },
          "state_digest bb, the fault-free run's is aa");
  finding([](run_result& r) { r.summary["weights_digest"] = "bb"; }, "weights_digest bb");
  finding([](run_result& r) { r.summary["steps_committed"] = 99; }, "steps_committed 99");
  finding([](run_result& r) { r.summary = nullptr; }, "no summary");
  finding([](run_result& r) { r.attempts[0].end = {1, true, SIGKILL}; }, "killed by SIGKILL");
  finding([](run_result& r) { r.attempts[0].end = {1, false, 3}; }, "exit code 3");
  finding([](run_result& r) { r.hung = {"12 (x) in state T"}; }, "12 (x) in state T");
  finding([](run_result& r) { r.leaks = {"process 12 (x) in state S was left"}; }, "process 12");
  finding([](run_result& r) { r.at_end.worker.descriptors = 60; }, "descriptors of a worker: 60");
  finding([](run_result& r) { r.at_end.director.resident_bytes = 1 << 30; }, "memory of a director: 1GiB");
}

TEST_CASE("chaos verdict: a director's death is healed by its successor's first step") {
  auto run = calm_result();
  run.plan = {inside("director-kill@after=4s")};
  run.struck.resize(1);
  run.attempts[0].ended = 4s;
  run.attempts[0].end = {1, true, SIGKILL};
  run.attempts.push_back({5s,
                          6s,
                          15s,
                          {},
                          {{{"t", 0.0}, {"event", "job_started"}, {"workers", 3}},
                           {{"t", 2.0}, {"event", "first_step_applied"}},
                           {{"t", 3.0}, {"event", "first_step_applied"}}}});
  const auto verdict = judge(1, std::move(run), calm());
  CHECK(verdict.right());
  CHECK(verdict.outcomes[0].recovered_ms == 4000);
  CHECK_FALSE(verdict.goodput);
}

TEST_CASE("chaos verdict: the timeline is in order and names strikes") {
  const auto text = timeline_of(judge(4, struck_result(), calm()));
  const auto struck = text.find("-> kill:worker=1@after=2s");
  const auto seen = text.find("failure_detected rank 1");
  REQUIRE(struck != std::string::npos);
  REQUIRE(seen != std::string::npos);
  CHECK(struck < seen);
  CHECK(text.find("after=30s") == std::string::npos);
}

} // namespace
} // namespace troupe::chaos
