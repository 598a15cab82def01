// Switches, and the faulty seams that are one call deep: storage, clock, executors (FS-1, FS-2).
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/faults/faulty_environment.hpp"
#include "runtime/sim/sim_environment.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t plenty = 100'000;

struct idle_program final : sim_program {};

// One simulated process whose seams can be struck.
struct struck_process {
  void settle() {
    (void)machine.world.run_until([] { return false; }, plenty);
  }
  void pass(duration time) {
    bool there = false;
    machine.world.after(time, [&there] { there = true; });
    REQUIRE(machine.world.run_until([&there] { return there; }, plenty));
  }
  void strike(const char* spec) { faulty.switches().turn_on(parse_fault(spec).value()); }
  expected<void> write(const std::string& path, const std::string& text) {
    const std::span<const std::byte> whole = std::as_bytes(std::span{text});
    const std::vector<std::span<const std::byte>> pieces{whole.first(3), whole.subspan(3)};
    return faulty.env().files.write_file(path, pieces);
  }
  [[nodiscard]] std::string read(const std::string& path) {
    const auto bytes = machine.disk.read_file(path, 1000);
    return bytes ? std::string{reinterpret_cast<const char*>(bytes->data()), bytes->size()} : "none";
  }

  sim_machine machine{1};
  sim_process& process{
      machine.world.start({}, 0ns, [](sim_process&) { return std::make_unique<idle_program>(); })};
  sim_environment seams{machine, process};
  faulty_environment faulty{seams.env(), {1, 2}};
};

TEST_CASE("fault switches: what is on for a while is off after it (FS-1)") {
  struck_process one;
  one.strike("disk-full@step=1,for=50ms");
  CHECK(one.faulty.switches().full_storage.on(one.faulty.switches().now()));
  one.pass(50ms);
  CHECK_FALSE(one.faulty.switches().full_storage.on(one.faulty.switches().now()));
  one.strike("disk-full@step=1");
  one.pass(std::chrono::hours{10});
  CHECK(one.faulty.switches().full_storage.on(one.faulty.switches().now()));
}

TEST_CASE("fault switches: what strikes once is taken once (FS-2)") {
  single_strike once;
  CHECK_FALSE(once.take());
  once.arm();
  once.arm();
  CHECK(once.take());
  CHECK_FALSE(once.take());
}

TEST_CASE("fault switches: a slow prefetcher is not a slow worker; factors have their defaults") {
  struck_process one;
  auto& switches = one.faulty.switches();
  one.strike("slow:prefetcher=0@step=1,factor=7");
  CHECK(switches.slow_reader.factor() == 7);
  CHECK_FALSE(switches.slow_worker.on(switches.now()));
  one.strike("slow:worker=0@step=1");
  CHECK(switches.slow_worker.factor() == fault_switches::slow_factor_default);
  one.strike("clog:worker=0@step=1");
  CHECK(switches.clog.factor() == fault_switches::clog_ms_default);
}

TEST_CASE("faulty storage: a full disk refuses every write by name, and takes them again after it") {
  struck_process one;
  REQUIRE(one.write("a", "before"));
  one.strike("disk-full@step=1,for=1s");
  const auto refused = one.write("b", "during");
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().code == errc::storage_full);
  CHECK(refused.failure().text.starts_with("b: no space left"));
  CHECK(one.read("a") == "before");
  CHECK(one.read("b") == "none");
  one.pass(1s);
  CHECK(one.write("b", "afterwards"));
}

TEST_CASE("faulty storage: a torn write leaves half of the bytes, and the process dies in it") {
  struck_process one;
  one.strike("torn-write@step=1");
  CHECK_FALSE(one.write("shard", "0123456789"));
  CHECK_FALSE(one.process.alive());
  CHECK(one.read("shard") == "01234");
  CHECK_FALSE(one.write("later", "nothing any more"));
  CHECK(one.read("later") == "none");
}

TEST_CASE("faulty clock: jumps ahead, and again; its timers do not notice") {
  struck_process one;
  auto& clock = one.faulty.env().clock;
  const auto before = clock.now();
  bool rung = false;
  clock.call_after(100ms, [&rung] { rung = true; });
  one.strike("clock-step:worker=0@step=1,for=1h");
  one.strike("clock-step:worker=0@step=1,for=30min");
  CHECK(clock.now() - before == 90min);
  CHECK(one.faulty.switches().now() == before); // faults last by the true clock
  one.pass(50ms);
  CHECK_FALSE(rung);
  one.pass(60ms);
  CHECK(rung);
}

TEST_CASE("slow executor: while it is on, a task keeps the executor for as many times as long") {
  const auto time_of_ten_tasks = [](const char* fault) {
    struck_process one;
    if (fault != nullptr) one.strike(fault);
    time_point last;
    for (int i = 0; i < 10; ++i)
      one.faulty.env().storage_thread.post([&] { last = one.machine.world.now(); });
    one.settle();
    return last.time_since_epoch();
  };
  CHECK(time_of_ten_tasks("disk-slow@step=1,factor=30") > 10 * time_of_ten_tasks(nullptr));
  CHECK(time_of_ten_tasks("slow:prefetcher=0@step=1,factor=30") == time_of_ten_tasks(nullptr));
}

} // namespace
} // namespace troupe
