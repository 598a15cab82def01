#include <chrono>
#include <memory>

#include <catch2/catch_test_macros.hpp>

#include "bench/support/job_runner.hpp"

namespace troupe::bench {
namespace {

using namespace std::chrono_literals;

constexpr duration limit = 30s;

TEST_CASE("job runner: a program's output, or how it ended and its last line") {
  auto runner = job_runner::make();
  REQUIRE(runner);
  const auto said = (*runner)->output_of("/bin/sh", {"-c", "echo \"$1\"", "sh", "a b"}, limit);
  REQUIRE(said);
  CHECK(*said == "a b\n");
  const auto failed = (*runner)->output_of("/bin/sh", {"-c", "echo first >&2; echo why >&2; exit 3"}, limit);
  REQUIRE_FALSE(failed);
  CHECK(failed.failure().text == "/bin/sh: exit code 3: why");
}

TEST_CASE("job runner: nothing outlives it, and its folder is removed (JB-1)") {
  std::filesystem::path folder;
  {
    auto runner = job_runner::make();
    REQUIRE(runner);
    folder = (*runner)->folder();
    CHECK(std::filesystem::exists(folder));
    // The shell's own arguments are what a training program gets: --quiet --events FILE.
    const auto heard = std::make_shared<bool>(false);
    const auto pid = (*runner)->start_with_events(
        "/bin/sh", {"-c", "echo '{\"event\":\"x\"}' >\"$3\"; exec tail -f /dev/null", "sh"},
        [heard](const nlohmann::json& event) { *heard = event.at("event") == "x"; });
    REQUIRE(pid);
    CHECK((*runner)->wait([&] { return *heard; }, limit));
    CHECK((*runner)->runs(*pid));
  }
  CHECK_FALSE(std::filesystem::exists(folder));
}

} // namespace
} // namespace troupe::bench
