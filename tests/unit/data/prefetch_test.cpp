#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/data/prefetch_pump.hpp"
#include "runtime/data/sample_order.hpp"
#include "runtime/data/synthetic_dataset.hpp"
#include "tests/support/allocation_count.hpp"
#include "tests/support/manual_executor.hpp"

namespace troupe {
namespace {

// A sample's only feature is its index, so that a test can read back which samples a batch holds.
class index_dataset final : public dataset {
public:
  explicit index_dataset(std::uint64_t samples)
      : samples_{samples} {}
  [[nodiscard]] std::string name() const override { return "index"; }
  [[nodiscard]] std::uint64_t samples() const override { return samples_; }
  [[nodiscard]] std::uint32_t features() const override { return 1; }
  [[nodiscard]] std::uint32_t classes() const override { return 10; }
  [[nodiscard]] std::string digest() const override { return {}; }
  [[nodiscard]] expected<void> read_into(std::uint64_t index, std::span<float> inputs) const override {
    if (index == broken_index) return error{errc::bad_data, "sample " + std::to_string(index) + " is broken"};
    inputs[0] = static_cast<float>(index);
    return {};
  }
  [[nodiscard]] std::uint8_t label(std::uint64_t index) const override {
    return static_cast<std::uint8_t>(index % 10);
  }
  std::optional<std::uint64_t> broken_index;

private:
  std::uint64_t samples_;
};

struct bench {
  explicit bench(std::uint32_t credit = 3, std::uint64_t samples = 100)
      : data{std::make_shared<index_dataset>(samples)}
      , stream{std::make_shared<batch_stream>(credit, 1)} {
    make_pump();
  }
  void make_pump() {
    pump.reset();
    prefetch_hooks hooks;
    hooks.before_read = [this](step_id step) {
      ++reads;
      if (fault_at == step) throw std::runtime_error{"planted"};
    };
    hooks.on_failed = [this](const prefetch_failure& failure) { failures.push_back(failure); };
    pump = std::make_unique<prefetch_pump>(reader, data, stream, std::move(hooks));
  }
  std::optional<batch> next(std::uint64_t generation, std::uint64_t step) {
    return stream->try_next(generation_id{generation}, step_id{step});
  }

  test::manual_executor reader;
  std::shared_ptr<index_dataset> data;
  std::shared_ptr<batch_stream> stream;
  std::optional<step_id> fault_at;
  std::vector<prefetch_failure> failures;
  int reads{0};
  std::unique_ptr<prefetch_pump> pump;
};

batch_assignment all_shards(std::uint64_t generation, std::uint64_t first, std::uint64_t last) {
  return {generation_id{generation}, step_id{first}, step_id{last}, 0, 4, 4, 8, 7};
}

std::vector<std::uint64_t> indices_of(const batch& of) {
  std::vector<std::uint64_t> result;
  for (std::uint32_t s = 0; s < of.shard_count; ++s) {
    const auto view = of.shard(s);
    for (std::size_t i = 0; i < view.samples; ++i) {
      CHECK(view.labels[i] == static_cast<std::uint64_t>(view.inputs[i]) % 10);
      result.push_back(static_cast<std::uint64_t>(view.inputs[i]));
    }
  }
  return result;
}

TEST_CASE("prefetch pump: holds no more than the credit granted (PF-1)") {
  bench b{3};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  b.reader.run_all();
  CHECK(b.stream->ready() == 3);
  CHECK(b.stream->credit_left() == 0);
  auto held = b.next(1, 0).value();
  b.reader.run_all();
  CHECK(b.stream->ready() == 2); // the consumer's batch still counts
  b.stream->give_back(std::move(held));
  b.reader.run_all();
  CHECK(b.stream->ready() == 3);
}

TEST_CASE("prefetch pump: at most one task waits on the reader") {
  bench b{3};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  CHECK(b.reader.pending() == 1);
  while (b.reader.run_one()) {
    b.stream->released();
    b.stream->released();
    if (b.stream->ready() == 3) break;
    CHECK(b.reader.pending() == 1);
  }
}

TEST_CASE("prefetch pump: batches leave in step order and stop at the last step (PF-2)") {
  bench b{2};
  REQUIRE(b.pump->start(all_shards(1, 5, 11)));
  for (std::uint64_t step = 5; step < 11; ++step) {
    b.reader.run_all();
    auto found = b.next(1, step);
    REQUIRE(found);
    CHECK(found->step == step_id{step});
    CHECK(found->first_sample == step * 8);
    CHECK(found->shard(1).first_sample == step * 8 + 2);
    b.stream->give_back(std::move(*found));
  }
  b.reader.run_all();
  CHECK_FALSE(b.next(1, 11));
  CHECK(b.reads == 6);
}

// Runs steps [0, 50) of 8 samples over 100 samples: 4 epochs, with batches that straddle them.
std::map<std::uint64_t, std::vector<std::uint64_t>> samples_by_shard(std::uint32_t workers) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> result; // key: step * 4 + shard
  for (std::uint32_t rank = 0; rank < workers; ++rank) {
    bench b{2};
    auto mine = all_shards(1, 0, 50);
    mine.first_shard = 4 * rank / workers;
    mine.shard_count = 4 * (rank + 1) / workers - mine.first_shard;
    REQUIRE(b.pump->start(mine));
    for (std::uint64_t step = 0; step < 50; ++step) {
      b.reader.run_all();
      auto found = b.next(1, step).value();
      const auto indices = indices_of(found);
      for (std::uint32_t s = 0; s < mine.shard_count; ++s)
        result[step * 4 + mine.first_shard + s] = {indices[2 * s], indices[2 * s + 1]};
      b.stream->give_back(std::move(found));
    }
  }
  return result;
}

TEST_CASE("prefetch pump: a shard's samples do not depend on the number of workers (PF-3)") {
  const auto one = samples_by_shard(1);
  CHECK(one.size() == 200);
  for (const std::uint32_t workers : {2U, 3U, 4U})
    CHECK(samples_by_shard(workers) == one);
  std::vector<int> seen(100, 0);
  sample_order order{100, 7};
  std::uint64_t running = 0;
  for (const auto& [place, indices] : one)
    for (const auto index : indices) {
      ++seen[index];
      CHECK(index == order.index_of(running++));
    }
  CHECK(seen == std::vector<int>(100, 4));
}

TEST_CASE("prefetch pump: a newer assignment hands out nothing of the older one (PF-4, BS-1)") {
  bench b{3};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  b.reader.run_all();
  auto held = b.next(1, 0).value();
  REQUIRE(b.pump->start(all_shards(2, 1, 100)));
  // The reader has not got to it yet: what is ready belongs to generation 1.
  CHECK_FALSE(b.next(2, 1));
  b.reader.run_all();
  CHECK_FALSE(b.next(1, 1)); // a consumer that is behind gets nothing and takes nothing away
  b.stream->give_back(std::move(held));
  auto fresh = b.next(2, 1);
  REQUIRE(fresh);
  CHECK(fresh->generation == generation_id{2});
  CHECK(fresh->step == step_id{1});
}

TEST_CASE("prefetch pump: of several control calls only the last counts (PF-4)") {
  bench b{3};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  REQUIRE(b.pump->start(all_shards(2, 0, 100)));
  b.pump->stop();
  REQUIRE(b.pump->start(all_shards(3, 4, 100)));
  b.reader.run_all();
  CHECK(b.reads == 3);
  CHECK(b.next(3, 4));
  b.pump->stop();
  b.reader.run_all();
  CHECK(b.stream->ready() == 0);
  CHECK_FALSE(b.next(3, 5));
  CHECK(b.stream->credit_left() == 3);
}

TEST_CASE("prefetch pump: every interleaving of a control call and the pump gives the new batches (PF-4)") {
  for (int before = 0; before < 8; ++before)
    for (int taken = 0; taken < 3; ++taken) {
      bench b{3};
      REQUIRE(b.pump->start(all_shards(1, 0, 100)));
      for (int i = 0; i < before; ++i)
        b.reader.run_one();
      std::vector<batch> held;
      for (int i = 0; i < taken; ++i)
        if (auto found = b.next(1, static_cast<std::uint64_t>(i))) held.push_back(std::move(*found));
      b.pump->stop();
      REQUIRE(b.pump->start(all_shards(2, 1, 4)));
      for (auto& old : held)
        b.stream->give_back(std::move(old));
      for (std::uint64_t step = 1; step < 4; ++step) {
        b.reader.run_all();
        auto found = b.next(2, step);
        REQUIRE(found);
        b.stream->give_back(std::move(*found));
      }
    }
}

TEST_CASE("prefetch pump: a thrown fault is reported once with its text, and start heals (PF-3)") {
  bench b{3};
  b.fault_at = step_id{4};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  std::vector<std::vector<std::uint64_t>> seen;
  const auto take = [&](std::uint64_t step) {
    b.reader.run_all();
    auto found = b.next(1, step);
    if (!found) return false;
    seen.push_back(indices_of(*found));
    b.stream->give_back(std::move(*found));
    return true;
  };
  for (std::uint64_t step = 0; step < 4; ++step)
    REQUIRE(take(step));
  CHECK_FALSE(take(4));
  REQUIRE(b.failures.size() == 1);
  CHECK(b.failures[0].generation == generation_id{1});
  CHECK(b.failures[0].step == step_id{4});
  CHECK(b.failures[0].cause.code == errc::actor_failed);
  CHECK(b.failures[0].cause.text == "planted [prefetcher, reading step 4]");

  b.fault_at.reset();
  CHECK(b.stream->next_step() == step_id{4});
  b.make_pump(); // as a supervisor does: the same stream, a new pump
  REQUIRE(b.pump->start(all_shards(1, b.stream->next_step().value(), 100)));
  for (std::uint64_t step = 4; step < 8; ++step)
    REQUIRE(take(step));
  CHECK(b.failures.size() == 1);

  bench calm{3};
  REQUIRE(calm.pump->start(all_shards(1, 0, 100)));
  for (std::uint64_t step = 0; step < 8; ++step) {
    calm.reader.run_all();
    auto found = calm.next(1, step).value();
    CHECK(indices_of(found) == seen[step]);
    calm.stream->give_back(std::move(found));
  }
}

TEST_CASE("prefetch pump: ready batches outlast the failure behind them") {
  bench b{3};
  b.fault_at = step_id{2};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  b.reader.run_all();
  REQUIRE(b.failures.size() == 1);
  CHECK(b.next(1, 0));
  CHECK(b.next(1, 1));
  CHECK_FALSE(b.next(1, 2));
  CHECK(b.stream->next_step() == step_id{2});
}

TEST_CASE("prefetch pump: a dataset's error keeps its code and names the step") {
  bench b{3};
  b.data->broken_index = sample_order{100, 7}.index_of(11);
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  b.reader.run_all();
  REQUIRE(b.failures.size() == 1);
  CHECK(b.failures[0].step == step_id{1});
  CHECK(b.failures[0].cause.code == errc::bad_data);
  CHECK(b.stream->ready() == 1);
}

TEST_CASE("prefetch pump: a pump that is gone reads and reports nothing more (PF-5)") {
  bench b{3};
  b.fault_at = step_id{0};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  SECTION("before its control call ran") {}
  SECTION("before its first read") {
    b.reader.run_one();
  }
  b.pump.reset();
  b.stream->released();
  b.reader.run_all();
  CHECK(b.reads == 0);
  CHECK(b.failures.empty());
  CHECK(b.stream->ready() == 0);
}

TEST_CASE("prefetch pump: an assignment that cannot be is refused and changes nothing") {
  bench b{3};
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  b.reader.run_all();
  const auto refused = [&b](auto change) {
    auto wrong = all_shards(2, 0, 100);
    change(wrong);
    const auto started = b.pump->start(wrong);
    REQUIRE_FALSE(started);
    CHECK(started.failure().code == errc::bad_argument);
  };
  refused([](batch_assignment& a) { a.global_batch = 0; });
  refused([](batch_assignment& a) { a.shards = 0; });
  refused([](batch_assignment& a) { a.shards = 3; });
  refused([](batch_assignment& a) { a.shard_count = 0; });
  refused([](batch_assignment& a) { a.first_shard = 4; });
  refused([](batch_assignment& a) { a.shard_count = 5; });
  refused([](batch_assignment& a) { a.first_step = step_id{101}; });
  refused([](batch_assignment& a) { a.last_step = step_id{~std::uint64_t{0}}; });
  b.reader.run_all();
  CHECK(b.next(1, 0));
}

TEST_CASE("batch stream: on_ready comes once after a look that found nothing (BS-2)") {
  bench b{3};
  int calls = 0;
  b.stream->set_on_ready([&calls] { ++calls; });
  REQUIRE(b.pump->start(all_shards(1, 0, 100)));
  b.reader.run_all();
  CHECK(calls == 0); // nobody has asked
  for (std::uint64_t step = 0; step < 3; ++step)
    b.stream->give_back(b.next(1, step).value());
  CHECK_FALSE(b.next(1, 3));
  b.reader.run_all();
  CHECK(calls == 1);
  b.stream->set_on_ready({});
  CHECK(b.next(1, 3));
}

TEST_CASE("prefetch pump: a larger share grows the buffers, a smaller one keeps them") {
  bench b{2};
  auto half = all_shards(1, 0, 100);
  half.shard_count = 2;
  REQUIRE(b.pump->start(half));
  b.reader.run_all();
  auto old = b.next(1, 0).value();
  const auto before = indices_of(old);
  REQUIRE(b.pump->start(all_shards(2, 1, 100)));
  b.reader.run_all();
  CHECK(indices_of(old) == before); // still valid in the consumer's hands
  b.stream->give_back(std::move(old));
  auto grown = b.next(2, 1).value();
  CHECK(indices_of(grown).size() == 8);
  b.stream->give_back(std::move(grown));
  half.generation = generation_id{3};
  REQUIRE(b.pump->start(half));
  const auto counted = test::allocations_so_far();
  b.reader.run_all();
  CHECK(test::allocations_so_far() == counted);
  CHECK(indices_of(b.next(3, 0).value()).size() == 4);
}

TEST_CASE("prefetch pump: the steady state of a step allocates nothing") {
  bench b{3};
  b.stream->set_on_ready([] {});
  REQUIRE(b.pump->start(all_shards(1, 0, 1000)));
  b.reader.run_all();
  const auto counted = test::allocations_so_far();
  for (std::uint64_t step = 0; step < 900; ++step) {
    auto found = b.stream->try_next(generation_id{1}, step_id{step});
    if (!found) break;
    b.stream->give_back(std::move(*found));
    b.reader.run_all();
  }
  const auto after = test::allocations_so_far();
  CHECK(b.stream->next_step() == step_id{900});
  CHECK(after == counted);
}

} // namespace
} // namespace troupe
