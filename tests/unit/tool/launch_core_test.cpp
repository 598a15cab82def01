#include <csignal>

#include <catch2/catch_test_macros.hpp>

#include "cli/launch/launch.hpp"
#include "cli/launch/launch_core.hpp"

namespace troupe {
namespace {

TEST_CASE("launch core: all copies that end well give 0, and `over` is said once (LA-4)") {
  launch_core core{3};
  CHECK_FALSE(core.on_exit(1, {11, false, 0}).over);
  CHECK_FALSE(core.on_exit(0, {10, false, 0}).over);
  const auto last = core.on_exit(2, {12, false, 0});
  CHECK(last.over);
  CHECK(last.signal_all == 0);
  CHECK_FALSE(core.on_exit(2, {12, false, 9}).over);
  CHECK(core.exit_code() == 0);
}

TEST_CASE("launch core: the first failure ends the others and decides the exit code (LA-1, LA-2)") {
  launch_core core{3};
  const auto failed = core.on_exit(2, {12, false, 7});
  CHECK(failed.signal_all == SIGTERM);
  CHECK(failed.arm_grace);
  CHECK_FALSE(failed.over);
  CHECK(core.on_exit(0, {10, true, SIGTERM}).signal_all == 0); // told already
  CHECK(core.on_grace_over().signal_all == SIGKILL);
  CHECK(core.on_exit(1, {11, true, SIGKILL}).over);
  CHECK(core.exit_code() == 7);
  REQUIRE(core.first_failure());
  CHECK(core.first_failure()->rank == 2);
  CHECK(core.on_grace_over().signal_all == 0);
}

TEST_CASE("launch core: a copy killed by a signal counts as 128 + N (LA-1)") {
  launch_core core{1};
  const auto end = core.on_exit(0, {10, true, SIGSEGV});
  CHECK(end.over);
  CHECK(end.signal_all == 0); // nobody is left to be told
  CHECK(core.exit_code() == 128 + SIGSEGV);
}

TEST_CASE(
    "launch core: signals are passed on; one that ends starts the grace, the second kills (LA-2, LA-3)") {
  launch_core core{2};
  const auto other = core.on_signal(SIGUSR1);
  CHECK(other.signal_all == SIGUSR1);
  CHECK_FALSE(other.arm_grace);
  const auto first = core.on_signal(SIGINT);
  CHECK(first.signal_all == SIGINT);
  CHECK(first.arm_grace);
  CHECK(core.on_signal(SIGINT).signal_all == SIGKILL);
  (void)core.on_exit(0, {10, false, 3});
  (void)core.on_exit(1, {11, true, SIGKILL});
  CHECK(core.exit_code() == 128 + SIGINT);
}

TEST_CASE("launch: a foreign copy is told its place in the variables that such programs read") {
  const auto variables = copy_variables(2, 4, 29400);
  CHECK(variables == std::vector<std::string>{"RANK=2", "LOCAL_RANK=2", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=4",
                                              "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29400"});
}

TEST_CASE("launch: a Troupe program gets --workers only where a number was asked for") {
  launch_request request{.program = "p", .arguments = {"--steps", "5"}};
  CHECK(troupe_arguments(request) == std::vector<std::string>{"--steps", "5"});
  request.copies = 3;
  CHECK(troupe_arguments(request) == std::vector<std::string>{"--workers", "3", "--steps", "5"});
}

} // namespace
} // namespace troupe
