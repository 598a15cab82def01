#include "tests/unit/collective/collective_worlds.hpp"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <sched.h>

#include "runtime/base/invariant.hpp"
#include "runtime/host/thread_executor.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "transports/loopback/collective/loopback_collective.hpp"
#include "transports/shm/shm_collective.hpp"
#include "transports/shm/shm_communicator.hpp"

namespace troupe::worlds {

namespace {

int run_rank(const connector& connect, const body& work, std::uint32_t rank, start_line& start) {
  auto member = connect(rank);
  if (!member) return not_connected;
  return start.wait() ? work(**member, rank) : deadline_passed;
}

} // namespace

std::vector<int> run_threads(std::uint32_t count, const connector& connect, const body& work) {
  std::vector<int> results(count, -1);
  start_line start{count};
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] { results[rank] = run_rank(connect, work, rank, start); });
  for (auto& thread : threads)
    thread.join();
  return results;
}

std::vector<int> run_connected(std::uint32_t count, const connector& connect, const body& work) {
  start_line start{count};
  return run_processes(count, [&](std::uint32_t rank) { return run_rank(connect, work, rank, start); });
}

namespace {

class loopback_world final : public world {
public:
  [[nodiscard]] std::string name() const override { return "loopback threads"; }
  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const body& work) override {
    const auto descriptor = director_.prepare(shape);
    if (!descriptor) return {not_connected};
    return run_threads(
        shape.world,
        [&](std::uint32_t rank) {
          return loopback_collective{hall_}.connect(*descriptor, shape, rank_id{rank});
        },
        work);
  }

private:
  loopback_hall hall_;
  loopback_collective director_{hall_};
};

// A communicator, and the thread that its parts run on.
class laned_communicator final : public communicator {
public:
  [[nodiscard]] static expected<std::unique_ptr<communicator>>
  make(const std::function<expected<std::unique_ptr<communicator>>(executor* lane)>& connect) {
    auto made = std::make_unique<laned_communicator>();
    auto inner = connect(&made->lane_);
    if (!inner) return inner.failure();
    made->inner_ = std::move(*inner);
    return std::unique_ptr<communicator>{std::move(made)};
  }
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return inner_->contribution(index);
  }
  void begin(element_range part, part_done done) override { inner_->begin(part, std::move(done)); }
  void all_reduce(all_reduce_done done) override { inner_->all_reduce(std::move(done)); }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }

private:
  thread_executor lane_{"lane"};
  std::unique_ptr<communicator> inner_;
};

class shm_world final : public world {
public:
  shm_world(std::uint32_t cores, bool processes, bool lanes)
      : cores_{cores}
      , processes_{processes}
      , lanes_{lanes} {}
  [[nodiscard]] std::string name() const override {
    return std::string{"shm "} + (processes_ ? "processes" : "threads") + ", " + std::to_string(cores_) +
           " cores" + (lanes_ ? ", lanes" : "");
  }
  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const body& work) override {
    const auto descriptor = director_.prepare(shape);
    if (!descriptor) return {not_connected};
    const connector connect = [&](std::uint32_t rank) {
      const auto on = [&](executor* lane) {
        return shm_collective{{.cores = cores_, .lane = lane}}.connect(*descriptor, shape, rank_id{rank});
      };
      return lanes_ ? laned_communicator::make(on) : on(nullptr);
    };
    return processes_ ? run_connected(shape.world, connect, work) : run_threads(shape.world, connect, work);
  }

private:
  std::uint32_t cores_;
  bool processes_;
  bool lanes_;
  shm_collective director_;
};

class one_mapping_world final : public world {
public:
  one_mapping_world(std::uint32_t cores, bool lanes)
      : cores_{cores}
      , lanes_{lanes} {}
  [[nodiscard]] std::string name() const override {
    return "shm one mapping, " + std::to_string(cores_) + " cores";
  }
  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const body& work) override {
    const auto descriptor = director_.prepare(shape);
    if (!descriptor) return {not_connected};
    auto opened = segment::open(*descriptor, shape);
    if (!opened) return {not_connected};
    const std::shared_ptr<segment> memory{std::move(*opened)};
    return run_threads(
        shape.world,
        [&](std::uint32_t rank) {
          const auto on = [&](executor* lane) {
            return shm_communicator::make(memory, shape, rank_id{rank}, tuning_for(shape.world, cores_),
                                          lane);
          };
          return lanes_ ? laned_communicator::make(on) : on(nullptr);
        },
        work);
  }

private:
  std::uint32_t cores_;
  bool lanes_;
  shm_collective director_;
};

} // namespace

std::unique_ptr<world> loopback_threads() {
  return std::make_unique<loopback_world>();
}
std::unique_ptr<world> shm_threads(std::uint32_t cores, bool lanes) {
  return std::make_unique<shm_world>(cores, false, lanes);
}
std::unique_ptr<world> shm_one_mapping(std::uint32_t cores, bool lanes) {
  return std::make_unique<one_mapping_world>(cores, lanes);
}
std::unique_ptr<world> shm_processes(std::uint32_t cores, bool lanes) {
  return std::make_unique<shm_world>(cores, true, lanes);
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::sched_yield();
  }
  return true;
}

expected<reduction> reduce(communicator& member) {
  std::optional<expected<reduction>> answer;
  member.all_reduce([&answer](expected<reduction> done) { answer.emplace(std::move(done)); });
  invariant(answer.has_value(), "test: a blocking all-reduce answers before it returns");
  return *answer;
}

} // namespace troupe::worlds
