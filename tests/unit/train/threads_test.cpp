// The engine among real threads: a device and a reader a rank, a collective between them, aborts from
// outside. What the single-threaded tests cannot show is that nothing is shared without order (TSan).
#include <chrono>
#include <future>
#include <memory>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/data/prefetch_pump.hpp"
#include "runtime/data/synthetic_dataset.hpp"
#include "runtime/host/thread_executor.hpp"
#include "tests/unit/train/doubles.hpp"
#include "transports/loopback/collective/loopback_collective.hpp"

namespace troupe {
namespace {

using namespace troupe::testing;

constexpr auto deadline = std::chrono::seconds{60};
constexpr std::uint64_t last_step = 400;

step_settings settings() {
  return {.shards = 8, .global_batch = 64, .clip_norm = 0.05F, .rate = constant{0.05F}};
}

class waiting_observer final : public step_observer {
public:
  void on_step(const observation& what) override {
    if (what.step == announce_at) reached.set_value();
  }
  void on_ended(step_id applied, run_end) noexcept override { answered.set_value(applied); }
  void on_failed(step_id applied, const error&) noexcept override { answered.set_value(applied); }
  step_id announce_at;
  std::promise<void> reached;
  std::promise<step_id> answered;
};

struct threaded_rank {
  explicit threaded_rank(const std::shared_ptr<const dataset>& data)
      : rule{std::move(make_optimizer(adamw{}).value())}
      , stream{std::make_shared<batch_stream>(3, data->features())}
      , pump{reader, data, stream, {}} {
    store.freeze(rule->slot_names());
    engine = std::make_unique<step_engine>(step_context{kernels, store, *rule, device, clock, box, observer},
                                           settings());
  }
  // Returns once the run's answer has come; `outside` acts in between, on the caller's thread.
  void begin(communicator& reduce, generation_id generation, std::uint32_t rank, std::uint32_t world,
             std::uint64_t first) {
    observer.answered = {};
    const auto range = shard_range(settings().shards, world, rank);
    const auto started = pump.start({.generation = generation,
                                     .first_step = step_id{first},
                                     .last_step = step_id{last_step},
                                     .first_shard = range.first,
                                     .shard_count = range.count,
                                     .shards = settings().shards,
                                     .global_batch = settings().global_batch,
                                     .seed = 5});
    REQUIRE(started);
    device.post([this, &reduce, generation, rank, world, first] {
      engine->begin({.generation = generation,
                     .reduce = &reduce,
                     .batches = stream.get(),
                     .rank = rank,
                     .world = world,
                     .first_step = step_id{first},
                     .last_step = step_id{last_step}});
    });
  }
  step_id answer() {
    auto answered = observer.answered.get_future();
    REQUIRE(answered.wait_for(deadline) == std::future_status::ready);
    return answered.get();
  }

  std::unique_ptr<const optimizer> rule;
  parameter_store store{7};
  tiny_model kernels{store};
  ticking_clock clock;
  black_box box;
  waiting_observer observer;
  std::shared_ptr<batch_stream> stream;
  std::unique_ptr<step_engine> engine; // outlives the threads
  thread_executor reader{"reader"};
  thread_executor device{"device"};
  prefetch_pump pump;
};

// One generation from `first` on. Where `abort_at` is set rank 0 ends it after that step, and all leave.
std::string generation(std::vector<std::unique_ptr<threaded_rank>>& ranks, std::uint64_t number,
                       std::uint32_t world, std::uint64_t& first, std::uint64_t abort_at) {
  loopback_hall hall;
  loopback_collective meeting{hall};
  const collective_shape shape{generation_id{number}, world, settings().shards,
                               ranks[0]->engine->contribution_size()};
  const auto descriptor = meeting.prepare(shape).value();
  std::vector<std::unique_ptr<communicator>> communicators;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    communicators.push_back(std::move(meeting.connect(descriptor, shape, rank_id{rank}).value()));
  auto& leader = *ranks[0];
  leader.observer.announce_at = step_id{abort_at};
  for (std::uint32_t rank = 0; rank < world; ++rank)
    ranks[rank]->begin(*communicators[rank], generation_id{number}, rank, world, first);
  if (abort_at != 0) {
    REQUIRE(leader.observer.reached.get_future().wait_for(deadline) == std::future_status::ready);
    leader.observer.reached = {};
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      communicators[rank]->abort();
      ranks[rank]->device.post([&engine = *ranks[rank]->engine] { engine.end(); });
    }
  }
  std::vector<step_id> applied;
  for (std::uint32_t rank = 0; rank < world; ++rank)
    applied.push_back(ranks[rank]->answer());
  const auto [least, most] = std::ranges::minmax(applied);
  CHECK(most.value() - least.value() <= 1); // at most the step in flight is lost (SE-3)
  // The newest state survives and heals the others.
  const auto newest = static_cast<std::size_t>(std::ranges::find(applied, most) - applied.begin());
  for (auto& one : ranks)
    if (one.get() != ranks[newest].get())
      std::ranges::copy(ranks[newest]->store.arena(), one->store.arena().begin());
  first = most.value();
  return ranks[newest]->engine->state_digest();
}

std::vector<std::unique_ptr<threaded_rank>> make_ranks(std::size_t count) {
  const auto data = std::make_shared<synthetic_dataset>(
      synthetic_shape{.samples = 1000, .features = tiny_model::features, .classes = 2});
  std::vector<std::unique_ptr<threaded_rank>> ranks;
  for (std::size_t i = 0; i < count; ++i)
    ranks.push_back(std::make_unique<threaded_rank>(data));
  return ranks;
}

TEST_CASE("step engine: among threads, with aborted generations and resizes, the bits are those of one rank "
          "(SE-3, SE-7)") {
  auto one = make_ranks(1);
  std::uint64_t alone_from = 0;
  const auto alone = generation(one, 1, 1, alone_from, 0);
  CHECK(alone_from == last_step);

  auto ranks = make_ranks(3);
  std::uint64_t from = 0;
  (void)generation(ranks, 1, 3, from, 100);
  (void)generation(ranks, 2, 2, from, 250);
  CHECK(generation(ranks, 3, 3, from, 0) == alone);
  CHECK(from == last_step);
}

} // namespace
} // namespace troupe
