#include "runtime/policy/failure.hpp"

#include <csignal>
#include <set>

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

process_exit signalled(int number) {
  return {.pid = 4711, .signalled = true, .code = number};
}

TEST_CASE("failure: every kind has its own name, one class and one reaction (FA-1)") {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < failure_kinds; ++i) {
    const auto kind = static_cast<failure_kind>(i);
    CHECK(names.insert(to_string(kind)).second);
    CHECK(failure_kind_of(to_string(kind)) == kind);
    CHECK(to_string(class_of(kind)) != "unknown");
    CHECK(to_string(reaction_of(kind)) != "unknown");
  }
  CHECK_FALSE(failure_kind_of("nonsense"));
}

TEST_CASE("failure: reactions are fixed per class") {
  CHECK(reaction_of(failure_kind::kill) == failure_reaction::replace_process);
  CHECK(reaction_of(failure_kind::thrown) == failure_reaction::restart_actor);
  CHECK(reaction_of(failure_kind::stop) == failure_reaction::kill_and_replace);
  CHECK(reaction_of(failure_kind::hang) == failure_reaction::kill_and_replace);
  CHECK(reaction_of(failure_kind::path_lost) == failure_reaction::confirm);
  CHECK(reaction_of(failure_kind::straggler) == failure_reaction::report);
  CHECK(reaction_of(failure_kind::nan) == failure_reaction::stop_job);
  CHECK(reaction_of(failure_kind::storage) == failure_reaction::retry_later);
}

TEST_CASE("failure: an exit is classified by signal and code") {
  CHECK(failure_of_exit(signalled(SIGKILL), {}).kind == failure_kind::kill);
  CHECK(failure_of_exit(signalled(SIGKILL), {}).cause == "killed by SIGKILL");
  CHECK(failure_of_exit(signalled(SIGKILL), {.out_of_memory = true}).kind == failure_kind::oom);
  CHECK(failure_of_exit(signalled(SIGSEGV), {}).kind == failure_kind::segv);
  CHECK(failure_of_exit(signalled(SIGBUS), {}).kind == failure_kind::segv);
  CHECK(failure_of_exit(signalled(SIGABRT), {}).kind == failure_kind::abort);
  CHECK(failure_of_exit(signalled(SIGTERM), {}).kind == failure_kind::signal);
  CHECK(failure_of_exit({.pid = 1, .code = 3}, {}).kind == failure_kind::exit);
  CHECK(failure_of_exit({.pid = 1, .code = 3}, {}).cause == "exit code 3");
}

TEST_CASE("failure: the root cause comes first, the exit is a hop") {
  const auto f = failure_of_exit({.pid = 9, .code = 70},
                                 {.cause = "std::runtime_error: bad tensor", .told = failure_kind::thrown});
  CHECK(f.kind == failure_kind::thrown);
  CHECK(f.cause == "std::runtime_error: bad tensor [exit code 70]");
}

TEST_CASE("failure: who was ended by the director is reported with the reason (FA-2)") {
  const auto f = failure_of_exit(
      signalled(SIGKILL), {.condemned = failure_kind::stop, .condemned_text = "rank 1: no heartbeat for 1s"});
  CHECK(f.kind == failure_kind::stop);
  CHECK(f.cause == "rank 1: no heartbeat for 1s");
}

TEST_CASE("failure: one line says who, where and why") {
  failure f = failure_of_exit(signalled(SIGKILL), {});
  f.rank = rank_id{1};
  f.step = step_id{40};
  CHECK(f.text() == "rank 1 (pid 4711), step 40: kill: killed by SIGKILL");
  CHECK_FALSE(f.detected_in());
  f.detected_at = time_from_ns(5'000'000);
  f.fault_at = time_from_ns(2'000'000);
  CHECK(f.detected_in() == 3ms);
}

} // namespace
} // namespace troupe
