#include "runtime/host/instance_guard.hpp"

#include <csignal>
#include <optional>

#include <catch2/catch_test_macros.hpp>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_process.hpp"
#include "tests/unit/host/temporary_directory.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using outcome = instance_guard::outcome;

TEST_CASE("instance guard: one has the lock; the directory stays empty (IG-1)") {
  const temporary_directory directory;
  const auto first = instance_guard::open(directory.path());
  const auto second = instance_guard::open(directory.path());
  CHECK((*first)->try_lock().value() == outcome::locked);
  CHECK((*first)->try_lock().value() == outcome::locked);
  CHECK((*second)->try_lock().value() == outcome::held_by_others);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("instance guard: a directory that is not there is named") {
  const temporary_directory directory;
  const auto missing = instance_guard::open(directory / "missing");
  REQUIRE_FALSE(missing);
  CHECK(missing.failure().code == errc::not_found);
  CHECK(missing.failure().text.find("missing") != std::string::npos);
}

TEST_CASE("instance guard: the lock lasts until the last child that inherited it has ended (IG-2)") {
  const temporary_directory directory;
  event_loop loop;
  host_process processes{loop};
  bool ended = false;
  std::int64_t pid = 0;
  {
    const auto guard = instance_guard::open(directory.path());
    REQUIRE((*guard)->try_lock().value() == outcome::locked);
    const auto child = processes.start({HOST_TEST_CHILD, {"wait"}, {}, {(*guard)->fd()}},
                                       [&](const process_exit&) { ended = true; });
    REQUIRE(child);
    pid = child->pid;
  }
  const auto successor = instance_guard::open(directory.path());
  CHECK((*successor)->try_lock().value() == outcome::held_by_others);
  REQUIRE(processes.signal(pid, SIGKILL));
  REQUIRE(loop.run_until([&] { return ended; }, 30s));
  CHECK((*successor)->try_lock().value() == outcome::locked);
}

TEST_CASE("instance guard: waits for the holder to go") {
  const temporary_directory directory;
  event_loop loop;
  host_clock clock{loop};
  auto holder = instance_guard::open(directory.path()).value().release();
  REQUIRE(holder->try_lock().value() == outcome::locked);
  const auto waiting = instance_guard::open(directory.path());
  std::optional<expected<void>> result;
  (*waiting)->lock_within(clock, 30s, [&](expected<void> got) { result = std::move(got); });
  CHECK_FALSE(result.has_value());
  loop.post([holder] { delete holder; });
  REQUIRE(loop.run_until([&] { return result.has_value(); }, 30s));
  CHECK(*result);
}

TEST_CASE("instance guard: says so when the holder does not go in time") {
  const temporary_directory directory;
  event_loop loop;
  host_clock clock{loop};
  const auto holder = instance_guard::open(directory.path());
  REQUIRE((*holder)->try_lock().value() == outcome::locked);
  const auto waiting = instance_guard::open(directory.path());
  std::optional<expected<void>> result;
  (*waiting)->lock_within(clock, 60ms, [&](expected<void> got) { result = std::move(got); });
  REQUIRE(loop.run_until([&] { return result.has_value(); }, 30s));
  REQUIRE_FALSE(*result);
  CHECK(result->failure().code == errc::bad_argument);
  CHECK(result->failure().text.find("'" + directory.path() + "' is in use") != std::string::npos);
}

TEST_CASE("instance guard: destroyed while waiting, it calls nobody") {
  const temporary_directory directory;
  event_loop loop;
  host_clock clock{loop};
  const auto holder = instance_guard::open(directory.path());
  REQUIRE((*holder)->try_lock().value() == outcome::locked);
  {
    const auto waiting = instance_guard::open(directory.path());
    (*waiting)->lock_within(clock, 30s, [](expected<void>) { FAIL("called"); });
  }
  CHECK(clock.pending() == 0);
}

} // namespace
} // namespace troupe
