// The collective seam between simulated processes (CO-1 .. CO-3).
#include <csignal>

#include <memory>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "runtime/policy/canonical_sum.hpp"
#include "runtime/sim/sim_collective.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t plenty = 100'000;

struct idle_program final : sim_program {};

struct ranks {
  // `apart`: each rank on a host of its own.
  ranks(std::uint64_t seed, std::uint32_t world_size, std::size_t elements = 37,
        std::vector<std::uint32_t> cuts = {}, bool apart = false)
      : world{seed}
      , shape{generation_id{1}, world_size, 8, elements} {
    shape.cuts = std::move(cuts);
    shape.group_bytes = 64;
    director = &world.start({}, 0ns, [](sim_process&) { return std::make_unique<idle_program>(); });
    prepared = hub.make_collective(*director);
    const auto place = prepared->prepare(shape);
    REQUIRE(place);
    descriptor = *place;
    for (std::uint32_t r = 0; r < world_size; ++r) {
      processes.push_back(&world.start(
          {}, 0ns, [](sim_process&) { return std::make_unique<idle_program>(); }, apart ? r : 0));
      seams.push_back(hub.make_collective(*processes.back()));
      auto made = seams.back()->connect(descriptor, shape, rank_id{r});
      REQUIRE(made);
      members.push_back(std::move(*made));
    }
    answers.resize(world_size);
    numbers.resize(world_size);
    settle();
  }
  void settle() {
    (void)world.run_until([] { return false; }, plenty);
  }
  // Every contribution filled with a function of its global slot; the sums, one after the other.
  std::vector<float> contribute_all() {
    canonical_sum sum{shape};
    std::vector<const float*> slots;
    for (std::uint32_t r = 0; r < shape.world; ++r) {
      for (std::uint32_t i = 0; i < sum.slots_of(r); ++i) {
        const auto into = members[r]->contribution(i);
        for (std::size_t e = 0; e < into.size(); ++e)
          into[e] = 0.1F * static_cast<float>((r + 1) * (i + 3)) + 1e-3F * static_cast<float>(e);
        slots.push_back(into.data());
        CHECK(reinterpret_cast<std::uintptr_t>(into.data()) % 64 == 0);
      }
    }
    std::vector<float> right(sum.sums() * shape.elements);
    sum.evaluate(slots, 0, shape.elements, right.data(), store_kind::cached, 0, shape.elements);
    return right;
  }
  void reduce(std::uint32_t rank) {
    members[rank]->all_reduce([this, rank](expected<reduction> result) {
      if (!result) return void(answers[rank].emplace(result.failure()));
      auto& all = answers[rank].emplace(std::vector<float>{});
      for (std::uint32_t i = 0; i < canonical_sum{shape}.sums(); ++i)
        all->insert(all->end(), result->at(i).begin(), result->at(i).end());
      numbers[rank] = result->number;
    });
  }

  sim_world world;
  sim_collective_hub hub{world};
  collective_shape shape;
  sim_process* director{nullptr};
  std::unique_ptr<collective> prepared;
  std::string descriptor;
  std::vector<sim_process*> processes;
  std::vector<std::unique_ptr<collective>> seams;
  std::vector<std::unique_ptr<communicator>> members;
  std::vector<std::optional<expected<std::vector<float>>>> answers;
  std::vector<std::uint64_t> numbers; // of the last sum
};

TEST_CASE("sim collective: every rank gets the canonical sum, step after step (CO-1, CO-4)") {
  for (std::uint32_t size = 1; size <= 4; ++size) {
    ranks all{size, size};
    for (std::uint64_t step = 0; step < 3; ++step) {
      const auto right = all.contribute_all();
      for (std::uint32_t r = 0; r < size; ++r)
        all.reduce((r + 1) % size);
      all.settle();
      for (std::uint32_t r = 0; r < size; ++r) {
        REQUIRE(all.answers[r]);
        REQUIRE(*all.answers[r]);
        CHECK(**all.answers[r] == right);
        CHECK(all.numbers[r] == step + 1);
        all.answers[r].reset();
      }
    }
  }
}

TEST_CASE("sim collective: ranks with a part of the shards get the sum of each of its nodes (CO-1, CP-3)") {
  ranks all{3, 2, 37, {0, 3, 6}}; // [0, 4) and [4, 6)
  const auto right = all.contribute_all();
  all.reduce(0);
  all.reduce(1);
  all.settle();
  for (std::uint32_t r = 0; r < 2; ++r)
    CHECK(all.answers[r]->value() == right);
}

TEST_CASE("sim collective: a clog makes a sum and a group's call late, a cut holds them until it ends") {
  for (const bool cut : {false, true}) {
    ranks all{4, 2, 37, {}, true};
    const auto begun = all.world.now();
    const auto open_again = begun + 10s;
    if (cut)
      all.world.hosts().cut({.from = 1}, open_again);
    else
      all.world.hosts().clog({.from = 1}, 20ms, open_again);
    int met = 0;
    for (std::uint32_t r = 0; r < 2; ++r) {
      all.reduce(r);
      all.members[r]->group()->start({.call = group_call::barrier},
                                     [&met](const expected<void>& done) { met += done ? 1 : 0; });
    }
    const auto over = [&] { return met == 2 && all.answers[0] && all.answers[1]; };
    REQUIRE(all.world.run_until(over, plenty));
    if (cut)
      CHECK(all.world.now() >= open_again);
    else
      CHECK(all.world.now() < begun + 40ms);
  }
}

TEST_CASE("sim collective: an abort frees who waits and who comes later (CO-2)") {
  ranks all{5, 3};
  all.reduce(0);
  all.reduce(1);
  all.settle();
  CHECK_FALSE(all.answers[0]);
  CHECK(all.members[0]->arrivals() == std::vector<std::uint64_t>{1, 1, 0});
  all.members[2]->abort();
  all.reduce(2);
  all.settle();
  for (const auto& answer : all.answers) {
    REQUIRE(answer);
    CHECK(answer->failure().code == errc::aborted);
  }
}

TEST_CASE("sim collective: an abort that meets a complete sum takes it from nobody, or, where aborts split, "
          "leaves either answer (CO-2)") {
  const bool split = GENERATE(false, true);
  int with_sum = 0, aborted = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ranks all{seed, 2};
    all.hub.set_aborts_split(split);
    const auto right = all.contribute_all();
    all.reduce(0);
    all.reduce(1);
    all.members[0]->abort();
    all.settle();
    for (const auto& answer : all.answers) {
      REQUIRE(answer);
      ++(*answer ? with_sum : aborted);
      if (*answer) CHECK(**answer == right);
    }
  }
  CHECK(with_sum > 0);
  CHECK((aborted > 0) == split);
}

TEST_CASE("sim collective: a dead rank contributes nothing and is told nothing (SW-3)") {
  ranks all{5, 2};
  all.reduce(0);
  all.world.kill(all.processes[1]->pid(), SIGKILL);
  all.reduce(1); // what is left of the task that killed it
  all.settle();
  CHECK_FALSE(all.answers[0]);
  all.members[0]->abort();
  all.settle();
  REQUIRE(all.answers[0]);
  CHECK_FALSE(all.answers[1]);
}

TEST_CASE("sim collective: another generation's meeting place is out of reach (CO-3)") {
  ranks all{5, 2};
  auto other = all.shape;
  other.generation = generation_id{2};
  CHECK(all.seams[0]->connect(all.descriptor, other, rank_id{0}).failure().code == errc::bad_argument);
  REQUIRE(all.prepared->prepare(other));
  CHECK(all.seams[0]->connect(all.descriptor, all.shape, rank_id{0}).failure().code == errc::aborted);
}

} // namespace
} // namespace troupe
