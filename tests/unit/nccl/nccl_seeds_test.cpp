#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/reference.hpp"
#include "tests/unit/nccl/fake_world.hpp"
#include "transports/nccl/nccl_collective.hpp"

namespace troupe {
namespace {

using fake::fake_rank;
using fake::fake_world;

constexpr std::size_t elements = 75;
constexpr std::uint32_t sums_wanted = 3;

enum class trouble : std::uint8_t { none, abort, death, absent, skipped, stuck_abort, count };

// One member of one generation: contributes, sums, checks, again.
struct member {
  fake_rank* on{nullptr};
  std::uint32_t rank{0};
  std::unique_ptr<communicator> joined;
  std::uint32_t sums{0};
  std::uint32_t skips_at{sums_wanted + 1}; // stays away from then on
  std::uint32_t calls{0};
  std::uint32_t answers{0};
  bool connected{false};
  std::optional<error> failed;
  bool wrong{false};

  [[nodiscard]] bool over() const {
    return on->gone() || failed || (connected && (sums == sums_wanted || sums >= skips_at));
  }
};

// One generation in a seeded world, with a trouble at a moment that the seed chooses.
class generation_run {
public:
  generation_run(fake_world& world, const collective_shape& shape, std::vector<fake_rank*> ranks)
      : world_{world}
      , shape_{shape}
      , known_{sums_wanted, shape} {
    for (auto* one : ranks) {
      members_.push_back(std::make_unique<member>());
      members_.back()->on = one;
      members_.back()->rank = static_cast<std::uint32_t>(members_.size()) - 1;
    }
  }

  void run(trouble what, const std::string& descriptor) {
    auto& victim = *members_[world_.draw(static_cast<std::uint32_t>(members_.size()))];
    if (what == trouble::skipped) victim.skips_at = world_.draw(sums_wanted);
    for (auto& one : members_)
      if (what != trouble::absent || one.get() != &victim) connect(*one, descriptor);
    (void)world_.run_until([&] { return over(); }, what == trouble::none ? 300'000 : world_.draw(1200));
    if (what == trouble::stuck_abort) victim.on->abort_hangs = true;
    if (what == trouble::death) {
      victim.on->gpu.dead = true;
      if (world_.draw(2) == 0) victim.on->gpu.break_peers();
    }
    if (what == trouble::abort || what == trouble::stuck_abort) abort(victim);
    if (what != trouble::none && what != trouble::absent) { // the director ends the generation
      (void)world_.run_until([&] { return over(); }, world_.draw(600));
      for (auto& one : members_)
        abort(*one);
    }
    if (what == trouble::absent) victim.failed = error{errc::aborted, "never came"};
    REQUIRE(world_.run_until([&] { return over() || (what != trouble::absent && any_failed()); }));
    for (auto& one : members_) // the director hears of it
      if (!over()) abort(*one);
    REQUIRE(world_.run_until([&] { return over(); }));
  }

  void check() const {
    std::set<std::uint32_t> counts;
    for (const auto& one : members_) {
      CAPTURE(one->rank, one->sums);
      CHECK(!one->wrong);
      CHECK((one->answers == one->calls || one->on->gone())); // each exactly once
      if (one->failed) CHECK(one->failed->code == errc::aborted);
      if (one->connected) counts.insert(one->sums);
    }
    if (!counts.empty()) CHECK(*counts.rbegin() - *counts.begin() <= 1); // NS-2
  }
  [[nodiscard]] bool complete() const {
    return std::ranges::all_of(members_, [](const auto& one) { return one->sums == sums_wanted; });
  }
  // The ranks of this generation that ended with it, for a shrink; empty if none or all did.
  [[nodiscard]] std::vector<std::uint32_t> gone() const {
    std::vector<std::uint32_t> all;
    for (const auto& one : members_)
      if (one->on->gone()) all.push_back(one->rank);
    return all;
  }

  void leave() {
    for (auto& one : members_)
      one->joined.reset();
  }

private:
  void connect(member& one, const std::string& descriptor) {
    one.on->owner.post([this, &one, &descriptor] {
      if (one.on->gone()) return;
      auto made = nccl_collective{one.on->gpu, one.on->device}.connect(descriptor, shape_, rank_id{one.rank});
      if (!made) {
        one.failed = made.failure();
        return;
      }
      one.joined = std::move(*made);
      one.connected = true;
      next(one);
    });
  }
  void next(member& one) {
    if (one.sums == sums_wanted || one.sums == one.skips_at || !one.joined) return;
    contribute(one, reference::contributions_of(shape_, one.rank, known_.shards[one.sums]));
    ++one.calls;
    one.joined->all_reduce([this, &one](expected<reduction> done) {
      ++one.answers;
      if (!done) {
        one.failed = done.failure();
        return;
      }
      const bool right = reference::same_bits(done->sum, known_.sums[one.sums]);
      one.wrong = one.wrong || !right || done->number != one.sums + 1;
      ++one.sums;
      next(one);
    });
  }
  // By a kernel; or by the host, part by part, and the last one with the sum.
  static void contribute(member& one, const std::vector<std::vector<float>>& values) {
    const bool by_host = one.on->device->sums_of_host();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto to = one.joined->contribution(i);
      if (by_host)
        std::ranges::copy(values[i], to.begin());
      else
        one.on->gpu.launch([from = values[i], to] { std::ranges::copy(from, to.begin()); });
    }
    for (const auto part : {element_range{48, 64}, element_range{16, 48}})
      one.joined->begin(part, {});
  }
  void abort(member& one) {
    if (one.on->gone()) return;
    world_.hub.thread = "loop " + std::to_string(one.on->number);
    if (one.joined) one.joined->abort();
    if (one.skips_at <= one.sums && !one.failed) one.failed = error{errc::aborted, "stayed away"};
  }
  [[nodiscard]] bool any_failed() const {
    return std::ranges::any_of(members_, [](const auto& one) { return one->failed || one->on->gone(); });
  }
  [[nodiscard]] bool over() const {
    return std::ranges::all_of(members_, [](const auto& one) { return one->over(); });
  }

  fake_world& world_;
  collective_shape shape_;
  reference::steps known_;
  std::vector<std::unique_ptr<member>> members_;
};

struct tally {
  std::uint32_t generations{0};
  std::uint32_t complete{0};
  std::uint32_t shrinks{0};
  std::uint32_t shrinks_complete{0};
  std::uint32_t ended{0};
};

void run_seed(std::uint64_t seed, int version, bool hold, bool of_host, tally& total) {
  CAPTURE(seed, version, hold, of_host);
  fake_world world{seed};
  world.hub.has = nccl::features::of(version);
  const life_settings life{.init_deadline = std::chrono::milliseconds{20},
                           .close_deadline = std::chrono::milliseconds{5},
                           .abort_deadline = std::chrono::milliseconds{20},
                           .hold_deadline = std::chrono::milliseconds{20},
                           .hold_for_shrink = hold};
  std::vector<fake_rank*> alive;
  for (std::uint32_t i = 1 + world.draw(4); i > 0; --i)
    alive.push_back(&world.add(life, of_host));
  std::vector<std::unique_ptr<generation_run>> runs;
  std::vector<std::uint32_t> lost;
  for (std::uint64_t g = 1; g <= 4 && !alive.empty(); ++g) {
    const std::size_t group_bytes = seed % 2 == 0 ? 0 : 256; // a communicator, or two
    const collective_shape shape{generation_id{g}, static_cast<std::uint32_t>(alive.size()), 8, elements,
                                 group_bytes};
    nccl_collective director{alive[0]->gpu};
    const bool shrink = hold && world.hub.has.shrink && !lost.empty();
    const auto descriptor = shrink ? director.prepare_shrunk(shape, lost) : director.prepare(shape);
    REQUIRE(descriptor);
    const auto what = static_cast<trouble>(world.draw(static_cast<std::uint32_t>(trouble::count)));
    CAPTURE(g, static_cast<int>(what), shrink, alive.size());
    runs.push_back(std::make_unique<generation_run>(world, shape, alive));
    runs.back()->run(what, *descriptor);
    runs.back()->check();
    ++total.generations;
    total.complete += runs.back()->complete() ? 1U : 0U;
    total.shrinks += shrink ? 1U : 0U;
    total.shrinks_complete += shrink && runs.back()->complete() ? 1U : 0U;
    lost = runs.back()->gone();
    for (const auto* one : alive)
      total.ended += one->ended ? 1U : 0U;
    std::erase_if(alive, [](const fake_rank* one) { return one->gone(); });
    // Members leave before the next generation begins, or after. A shrink lends their memory anew.
    if (world.draw(2) == 0 || (hold && !lost.empty())) runs.back()->leave();
  }
  for (auto& run : runs)
    run->leave();
  const auto rests = [&] {
    return std::ranges::all_of(
        alive, [](const fake_rank* one) { return one->gone() || one->device->state() == life_state::none; });
  };
  CHECK(world.run_until(rests));
  CHECK(world.hub.violations == std::vector<std::string>{});
  world.bury();
}

TEST_CASE(
    "nccl collective over a FAKE of NCCL: under any interleaving and trouble no rule is broken, sums are "
    "canonical, nobody waits for ever (CO-1 to CO-5, NC-1 to NC-11, NS-1, NS-2)") {
  tally total;
  for (const int version : {21400, 22703, 22809})
    for (const bool hold : {false, true})
      for (const bool of_host : {false, true})
        for (std::uint64_t seed = 1; seed <= (of_host ? 90U : 60U); ++seed)
          run_seed(seed, version, hold, of_host, total);
  CAPTURE(total.generations, total.complete, total.shrinks, total.shrinks_complete, total.ended);
  CHECK(total.complete > total.generations / 5); // the seeds reach everything
  CHECK(total.shrinks_complete > 10);
  CHECK(total.ended > 10);
}

} // namespace
} // namespace troupe
