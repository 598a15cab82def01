// Ranks over the behavioural FAKE of NCCL, in one thread and virtual time: a seed chooses what happens next.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/seams/clock.hpp"
#include "tests/support/manual_executor.hpp"
#include "tests/unit/nccl/fake_gpu.hpp"
#include "transports/nccl/gpu_device.hpp"

namespace troupe::fake {

// Timers fire as tasks of the rank's loop.
class fake_clock final : public clock_seam {
public:
  fake_clock(const time_point& world_now, test::manual_executor& loop)
      : now_{world_now}
      , loop_{loop} {}
  [[nodiscard]] time_point now() const override { return now_; }
  timer_id call_after(duration delay, task work) override {
    timers_.push_back({++last_, now_ + delay, std::move(work)});
    return last_;
  }
  void cancel(timer_id timer) override {
    std::erase_if(timers_, [&](const entry& one) { return one.id == timer; });
  }
  [[nodiscard]] std::optional<time_point> next() const {
    if (timers_.empty()) return std::nullopt;
    return std::ranges::min_element(timers_, {}, &entry::when)->when;
  }
  void fire_due() {
    for (auto next = due(); next != timers_.end(); next = due()) {
      loop_.post(std::move(next->work));
      timers_.erase(next);
    }
  }

private:
  struct entry {
    timer_id id;
    time_point when;
    task work;
  };
  [[nodiscard]] std::vector<entry>::iterator due() {
    return std::ranges::find_if(timers_, [this](const entry& one) { return one.when <= now_; });
  }
  const time_point& now_;
  test::manual_executor& loop_;
  std::vector<entry> timers_;
  timer_id last_{0};
};

// One process with one GPU.
struct fake_rank {
  fake_rank(fake_hub& hub, const time_point& now, std::uint32_t which, const life_settings& life,
            bool sums_of_host)
      : number{which}
      , gpu{hub, which}
      , clock{now, loop}
      , device{gpu_device::make(gpu,
                                {.owner = owner,
                                 .loop = loop,
                                 .clock = clock,
                                 .spawn =
                                     [this](task work) {
                                       ++gpu.aborts_pending;
                                       expendable.push_back(std::move(work));
                                     },
                                 .end_process = [this](const std::string& why) { ended = why; }},
                                {.name = "fake:" + std::to_string(which),
                                 .life = life,
                                 .sums_of_host = sums_of_host,
                                 .eager_looks = 3})} {}
  [[nodiscard]] bool gone() const { return gpu.dead || ended.has_value(); }
  [[nodiscard]] bool rests() const { // nobody is left in it
    return device->state() == life_state::none && owner.pending() == 0;
  }

  std::uint32_t number;
  fake_gpu gpu;
  test::manual_executor owner{4096};
  test::manual_executor loop{4096};
  fake_clock clock;
  std::vector<task> expendable;
  bool abort_hangs{false};
  std::optional<std::string> ended; // its process ended by itself, and why
  std::shared_ptr<gpu_device> device;
};

class fake_world {
public:
  explicit fake_world(std::uint64_t seed)
      : random_{seed, 0} {}
  fake_hub hub;
  bool patient{false}; // time passes only when nothing else can happen: no deadline passes without a cause

  fake_rank& add(const life_settings& life, bool sums_of_host = false) {
    const auto number = static_cast<std::uint32_t>(ranks_.size());
    ranks_.push_back(std::make_unique<fake_rank>(hub, now_, number, life, sums_of_host));
    return *ranks_.back();
  }
  [[nodiscard]] std::uint32_t draw(std::uint32_t below) { return random_.block(drawn_++)[0] % below; }
  [[nodiscard]] duration elapsed() const { return now_ - time_point{}; }
  [[nodiscard]] std::uint64_t moves() const { return moves_; }

  // One thing that can happen, chosen by the seed. Time passes rarely, or when nothing else can happen.
  void move() {
    ++moves_;
    auto possible = hub.moves();
    for (auto& rank : ranks_)
      if (!rank->gone()) add_moves(*rank, possible);
    if (possible.empty() || (!patient && draw(40) == 0)) return pass_time();
    possible[draw(static_cast<std::uint32_t>(possible.size()))]();
  }
  [[nodiscard]] bool run_until(const std::function<bool()>& done, std::uint64_t moves_max = 300'000) {
    for (std::uint64_t i = 0; i < moves_max; ++i) {
      if (done()) return true;
      move();
    }
    return done();
  }

  // Members leave also where their process is gone: else they and their device hold each other.
  void bury() {
    for (auto& rank : ranks_)
      (void)rank->owner.run_all();
  }

private:
  void add_moves(fake_rank& rank, std::vector<std::function<void()>>& possible) {
    const auto as = [this, &rank](const char* thread, test::manual_executor& queue) {
      return [this, &rank, thread, &queue] {
        hub.thread = std::string{thread} + ' ' + std::to_string(rank.number);
        (void)queue.run_one();
      };
    };
    if (rank.owner.pending() > 0) possible.push_back(as("owner", rank.owner));
    if (rank.loop.pending() > 0) possible.push_back(as("loop", rank.loop));
    if (!rank.expendable.empty() && !rank.abort_hangs)
      possible.push_back([this, &rank] {
        hub.thread = "expendable " + std::to_string(rank.number);
        auto work = std::move(rank.expendable.front());
        rank.expendable.erase(rank.expendable.begin());
        --rank.gpu.aborts_pending;
        work();
      });
  }
  void pass_time() {
    std::optional<time_point> next;
    for (auto& rank : ranks_)
      if (!rank->gone())
        if (const auto due = rank->clock.next(); due && (!next || *due < *next)) next = due;
    if (!next) return;
    now_ = std::max(now_, *next);
    for (auto& rank : ranks_)
      if (!rank->gone()) rank->clock.fire_due();
  }

  counter_rng random_;
  std::uint64_t drawn_{0};
  std::uint64_t moves_{0};
  time_point now_{};
  std::vector<std::unique_ptr<fake_rank>> ranks_;
};

} // namespace troupe::fake
