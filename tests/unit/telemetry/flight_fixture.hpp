// Ranks that call each other through the real recorder, in virtual time: each has a ring, and a communicator
// that completes when told. What a test makes of them is what real ranks would have left.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/seams/process.hpp"
#include "runtime/telemetry/flight_compare.hpp"
#include "tests/unit/telemetry/manual_clock.hpp"

namespace troupe::flight {

// Completes a sum or call when its test says so.
class told_group final : public rank_group {
public:
  told_group(std::uint32_t rank, std::uint32_t world)
      : rank_{rank}
      , world_{world} {}
  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t world() const override { return world_; }
  void start(const group_operation&, group_done done) override {
    if (full) return done(error{errc::no_credit, "too many"});
    calls.push_back(std::move(done));
  }
  [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
    const auto at = std::ranges::find(ranks, rank_);
    if (at == ranks.end()) return std::unique_ptr<rank_group>{};
    return std::unique_ptr<rank_group>{std::make_unique<told_group>(
        static_cast<std::uint32_t>(at - ranks.begin()), static_cast<std::uint32_t>(ranks.size()))};
  }
  void end_first(expected<void> how = {}) {
    auto done = std::move(calls.front());
    calls.pop_front();
    done(std::move(how));
  }

  std::deque<group_done> calls;
  bool full{false}; // one more is refused

private:
  std::uint32_t rank_, world_;
};

class told_communicator final : public communicator {
public:
  explicit told_communicator(told_group* general)
      : general_{general} {}
  [[nodiscard]] std::span<float> contribution(std::size_t) override { return {}; }
  void begin(element_range, part_done done) override { parts.push_back(std::move(done)); }
  void all_reduce(all_reduce_done done) override { waiting = std::move(done); }
  void abort() noexcept override {}
  [[nodiscard]] rank_group* group() override { return general_; }

  all_reduce_done waiting;
  std::vector<part_done> parts;

private:
  told_group* general_;
};

struct rank {
  rank(manual_clock& clock, std::uint32_t number, std::uint32_t world, std::size_t elements,
       std::uint64_t generation = 1)
      : general{number, world}
      , recorder{box->flight, box->step_started, clock} {
    auto made = std::make_unique<told_communicator>(&general);
    inner = made.get();
    reduce = recorder.watch(std::move(made), {generation_id{generation}, world, world, elements});
  }
  void enter(std::uint64_t step) {
    box->step_started.store(step);
    reduce->all_reduce([](expected<reduction>) {});
  }
  void end(std::uint64_t receipt) {
    std::exchange(inner->waiting, {})(reduction{{}, receipt});
    box->step_applied.store(box->step_started.load());
  }
  void abort() {
    if (inner->waiting) std::exchange(inner->waiting, {})(error{errc::aborted, "ended"});
  }

  std::unique_ptr<black_box> box{std::make_unique<black_box>()};
  told_group general;
  flight_recorder recorder;
  told_communicator* inner{nullptr};
  std::unique_ptr<communicator> reduce;
};

inline flight_dump dump_of(const rank& from, std::uint32_t number, std::uint32_t world,
                           const manual_clock& clock, flight_writer by, const std::string& cause,
                           std::uint64_t generation = 1) {
  flight_header about{.generation = generation_id{generation},
                      .rank = rank_id{number},
                      .world = world,
                      .by = by,
                      .cause = cause,
                      .now = clock.now(),
                      .step_started = step_id{from.box->step_started.load()},
                      .step_applied = step_id{from.box->step_applied.load()},
                      .arrivals = {},
                      .groups = from.recorder.groups()};
  return make_flight_dump(std::move(about), from.box->flight);
}

} // namespace troupe::flight
