// Sums and general operations of one generation over a FAKE of NCCL, with a trouble at a moment that the seed
// chooses.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/group_contract.hpp"
#include "tests/unit/collective/reference.hpp"
#include "tests/unit/nccl/fake_groups.hpp"
#include "tests/unit/nccl/fake_world.hpp"
#include "transports/nccl/nccl_collective.hpp"

namespace troupe {
namespace {

using fake::fake_rank;
using fake::fake_world;
using group_worlds::bytes;
using group_worlds::player;
namespace plain = group_reference;

constexpr std::uint32_t batches = 4;

enum class trouble : std::uint8_t { none, abort, death, skipped, misfit, stuck_abort, count };

// What all ranks do in one batch: calls of some of them, all under way at once.
struct batch_call {
  group_operation what;
  bool sum{false};
  bool of_part{false}; // the group that was split off: all but the last rank
};

struct member {
  fake_rank* on{nullptr};
  std::uint32_t rank{0};
  std::unique_ptr<communicator> joined;
  std::unique_ptr<player> calls;
  rank_group* part{nullptr};
  std::deque<bytes> right; // by call: what comes out
  std::uint32_t batch{0};  // the next one
  std::uint32_t sums{0};
  std::uint32_t sum_dones{0};
  bool wrong_sum{false};
  bool sum_failed{false};
};

class group_job {
public:
  group_job(fake_world& world, std::uint64_t seed, const collective_shape& shape)
      : world_{world}
      , random_{seed, 99}
      , shape_{shape}
      , known_{batches * 6, shape} {}

  void run(trouble what) {
    const life_settings life{.init_deadline = std::chrono::seconds{1},
                             .close_deadline = std::chrono::milliseconds{5},
                             .abort_deadline = std::chrono::milliseconds{20}};
    for (std::uint32_t rank = 0; rank < shape_.world; ++rank) {
      members_.push_back(std::make_unique<member>());
      members_.back()->on = &world_.add(life);
      members_.back()->rank = rank;
    }
    const auto place = nccl_collective{members_[0]->on->gpu}.prepare(shape_);
    REQUIRE(place);
    for (auto& one : members_)
      connect(*one, *place);
    what_ = what;
    victim_ = world_.draw(shape_.world);
    strike_at_ = world_.draw(batches);
    bool struck = what == trouble::none || what == trouble::skipped || what == trouble::misfit;
    const auto moment = world_.draw(1500);
    for (std::uint64_t i = 0; !over() && i < 400'000; ++i) {
      world_.move();
      if (!struck && i >= moment) struck = strike();
      for (auto& one : members_)
        if (may_go_on(*one)) issue(*one);
      if (any_out() && world_.draw(100) == 0) end_for_all(); // the director hears of it, a little later
      // Nobody is out where one stays away, or where a call stands against a sum: they wait (NM-1).
      if ((what == trouble::skipped || what == trouble::misfit) && i == 20'000) end_for_all();
    }
    REQUIRE(over());
  }

  void check() {
    for (auto& one : members_) {
      CAPTURE(one->rank, one->batch);
      CHECK(!one->wrong_sum);
      if (one->on->gone()) continue;
      CHECK(one->sum_dones == one->sums);
      CHECK(one->calls->all_done_in_order());
      const auto& records = one->calls->records();
      bool failed = false;
      for (std::size_t i = 0; i < records.size(); ++i) {
        CAPTURE(i, static_cast<int>(records[i].what.call));
        if (records[i].succeeded()) {
          CHECK(!failed);
          CHECK(records[i].out == one->right[i]);
          continue;
        }
        const bool told = what_ == trouble::misfit && !failed && records[i].failed_with(errc::bad_argument);
        CHECK((told || records[i].failed_with(errc::aborted)));
        failed = true;
        misfits_told += told ? 1U : 0U;
      }
    }
  }
  [[nodiscard]] bool complete() const {
    return std::ranges::all_of(members_, [](const auto& one) { return finished(*one); });
  }
  // What calls named stays: the devices may still be copying.
  void leave() {
    for (auto& one : members_)
      one->joined.reset();
  }
  [[nodiscard]] bool rests() const {
    return std::ranges::all_of(members_, [](const auto& one) { return one->on->gone() || one->on->rests(); });
  }
  std::uint32_t misfits_told{0};

private:
  void connect(member& one, const std::string& place) {
    as_owner(one);
    auto made = nccl_collective{one.on->gpu, one.on->device}.connect(place, shape_, rank_id{one.rank});
    REQUIRE(made);
    one.joined = std::make_unique<fake::adopting_communicator>(one.on->gpu, std::move(*made));
    one.calls = std::make_unique<player>(*one.joined, one.rank);
    std::vector<std::uint32_t> most(std::max(1U, shape_.world - 1));
    std::iota(most.begin(), most.end(), 0U);
    one.part = one.calls->split(one.calls->group(), most);
    issue(one);
  }

  [[nodiscard]] std::vector<batch_call> draw_batch(std::uint32_t number) const {
    std::vector<batch_call> all;
    const auto words = random_.block(number);
    for (std::uint32_t i = 0; i <= words[0] % 5; ++i) {
      const auto drawn = random_.block(1000 + number * 10 + i);
      batch_call made{.sum = drawn[0] % 5 == 0, .of_part = drawn[0] % 3 == 0};
      made.what.call = static_cast<group_call>(drawn[1] % 8);
      made.what.type = plain::all_types[drawn[2] % element_types];
      made.what.op = plain::all_ops[drawn[3] % 4];
      made.what.elements = drawn[0] / 16 % 3 == 0 ? 3 : 41;
      all.push_back(made);
    }
    return all;
  }

  void issue(member& one) {
    as_owner(one);
    const bool strikes = one.rank == victim_ && one.batch == strike_at_;
    for (const auto& call : draw_batch(one.batch))
      if (call.sum)
        sum(one);
      else if (!call.of_part || one.part != nullptr)
        start(one, call.of_part ? *one.part : one.calls->group(), call.what,
              strikes && what_ == trouble::misfit);
    ++one.batch;
  }
  void sum(member& one) {
    const auto step = one.sums;
    if (one.sum_dones != step) return one_more(one); // a rank has one sum under way
    const auto values = reference::contributions_of(shape_, one.rank, known_.shards[step]);
    for (std::size_t i = 0; i < values.size(); ++i)
      one.on->gpu.launch(
          [from = values[i], to = one.joined->contribution(i)] { std::ranges::copy(from, to.begin()); });
    ++one.sums;
    one.joined->all_reduce([this, &one, step](expected<reduction> done) {
      ++one.sum_dones;
      one.sum_failed = one.sum_failed || !done;
      if (done) one.wrong_sum = one.wrong_sum || !reference::same_bits(done->sum, known_.sums[step]);
    });
  }
  void one_more(member& one) {
    one.right.emplace_back();
    one.calls->barrier(one.calls->group());
  }
  // Everybody's values in, the right ones out; a send and its receive between the first two.
  void start(member& one, rank_group& group, group_operation what, bool wrong) {
    const auto world = group.world();
    if (what.call == group_call::send || what.call == group_call::receive) {
      if (world < 2 || group.rank() > 1) return;
      what.call = group.rank() == 0 ? group_call::send : group_call::receive;
      what.peer = 1 - group.rank();
    }
    const group_contract::known_values known{world, what.type, what.elements};
    const auto own = group.rank();
    const auto first = group_contract::slice(known.in[own], 0, known.length);
    bytes in = first, out;
    switch (what.call) {
    case group_call::all_reduce:
      out = group_contract::slice(known.reduced[static_cast<std::size_t>(what.op)], 0, known.length);
      break;
    case group_call::reduce_scatter:
      in = known.in[own];
      out = group_contract::slice(known.reduced[static_cast<std::size_t>(what.op)], own, known.length);
      break;
    case group_call::all_gather:
      out = known.gathered(0);
      break;
    case group_call::all_to_all:
      in = known.in[own];
      out = known.gathered(own);
      break;
    case group_call::broadcast:
      out = group_contract::slice(known.in[0], 0, known.length);
      break;
    case group_call::receive:
      out = group_contract::slice(known.in[0], 0, known.length);
      break;
    case group_call::send:
      break;
    case group_call::barrier:
      in.clear();
      break;
    }
    if (wrong) what = {.call = group_call::barrier}; // of the same group
    if (wrong) in.clear(), out.clear();
    one.calls->call(group, what, std::move(in), out.size());
    one.right.push_back(std::move(out));
  }

  bool strike() {
    auto& on = *members_[victim_]->on;
    if (what_ == trouble::stuck_abort) on.abort_hangs = true;
    if (what_ == trouble::death) {
      on.gpu.dead = true;
      if (world_.draw(2) == 0) on.gpu.break_peers();
    } else {
      abort(*members_[victim_]);
    }
    return true;
  }
  void abort(member& one) {
    if (one.on->gone()) return;
    world_.hub.thread = "loop " + std::to_string(one.on->number);
    one.joined->abort();
  }
  void end_for_all() {
    for (auto& one : members_)
      abort(*one);
  }
  [[nodiscard]] bool any_out() const {
    return std::ranges::any_of(members_, [](const auto& one) {
      const auto state = one->on->device->state();
      return one->on->gone() || (state != life_state::initialising && state != life_state::ready);
    });
  }
  [[nodiscard]] bool may_go_on(const member& one) const {
    const bool stays_away = what_ == trouble::skipped && one.rank == victim_ && one.batch > strike_at_;
    return !one.on->gone() && one.batch < batches && !stays_away && idle(one) && !failed(one);
  }
  [[nodiscard]] static bool idle(const member& one) {
    return one.sum_dones == one.sums &&
           std::ranges::all_of(one.calls->records(), [](const auto& each) { return each.dones > 0; });
  }
  [[nodiscard]] static bool failed(const member& one) {
    return one.sum_failed || std::ranges::any_of(one.calls->records(), [](const auto& each) {
             return each.result && !*each.result;
           });
  }
  [[nodiscard]] static bool finished(const member& one) {
    return one.batch == batches && idle(one) && !failed(one);
  }
  [[nodiscard]] bool over() const {
    const bool any_failed = any_out();
    return std::ranges::all_of(members_, [&](const auto& one) {
      return one->on->gone() || (idle(*one) && (finished(*one) || any_failed));
    });
  }
  void as_owner(const member& one) { world_.hub.thread = "owner " + std::to_string(one.on->number); }

  fake_world& world_;
  counter_rng random_;
  collective_shape shape_;
  reference::steps known_;
  std::vector<std::unique_ptr<member>> members_;
  trouble what_{trouble::none};
  std::uint32_t victim_{0};
  std::uint32_t strike_at_{0};
};

TEST_CASE(
    "nccl group over a FAKE of NCCL: under any interleaving and trouble sums and calls are right or end "
    "typed, once and in order (CO-1, CO-2, GR-1, GR-2, GR-4, NM-1, NM-2, NG-1 to NG-3, NC-1 to NC-11)") {
  std::uint32_t complete = 0, misfits_told = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    fake_world world{seed};
    world.patient = true;
    const auto what = static_cast<trouble>(seed % static_cast<std::uint64_t>(trouble::count));
    CAPTURE(static_cast<int>(what));
    constexpr std::size_t group_bytes[]{1, 512, 8192};
    const collective_shape shape{generation_id{1}, 1 + world.draw(4), 8, 75, group_bytes[world.draw(3)]};
    group_job job{world, seed, shape};
    job.run(what);
    job.check();
    if (what == trouble::none) CHECK(job.complete());
    complete += job.complete() ? 1U : 0U;
    misfits_told += job.misfits_told;
    CHECK(world.hub.violations == std::vector<std::string>{});
    job.leave();
    CHECK(world.run_until([&] { return job.rests(); }));
    CHECK(world.hub.violations == std::vector<std::string>{});
    world.bury();
  }
  CHECK(complete > 60);
  CHECK(misfits_told > 60);
}

} // namespace
} // namespace troupe
