// The checkers find what they are for: histories that went wrong, one error each.
#include <numeric>

#include <catch2/catch_test_macros.hpp>

#include "cli/sim/history.hpp"
#include "runtime/data/sample_order.hpp"
#include "runtime/data/synthetic_dataset.hpp"

namespace troupe::sim {
namespace {

// Plays a job of one worker: steps of one shard each, applied as told.
class player {
public:
  player() { seen.watch(pid, box); }

  static workload small() {
    auto what = built_in_workloads().front();
    what.settings.steps = 4;
    what.settings.global_batch = 8;
    what.settings.shards = 1;
    return what;
  }
  // `shift`: takes other samples than the order says; `short_by`: leaves some out.
  void step(std::uint64_t generation, std::uint64_t step, std::uint64_t shift = 0, std::uint64_t short_by = 0,
            bool applied = true) {
    sample_order order{data.samples(), what.settings.seed};
    const std::size_t samples = what.settings.global_batch - short_by;
    std::vector<float> inputs(samples * data.features());
    std::vector<std::uint8_t> labels(samples);
    const auto first = step * what.settings.global_batch;
    for (std::size_t i = 0; i < samples; ++i) {
      const auto index = order.index_of(first + i + shift);
      REQUIRE(data.read_into(index, std::span{inputs}.subspan(i * data.features(), data.features())));
    }
    seen.on_shard(pid, {samples, data.features(), inputs, labels, first});
    seen.on_arrival(pid);
    const collective_shape shape{generation_id{generation}, 1, 1, 1};
    seen.on_sum(++sums, shape, std::span{&pid, 1}, std::span{&value, 1});
    box->step_applied = applied ? step + 1 : step;
    if (applied) seen.on_taken(sums, pid);
  }
  void steps(std::uint64_t generation, std::uint64_t from, std::uint64_t to) {
    for (auto at = from; at < to; ++at)
      step(generation, at);
  }
  [[nodiscard]] bool finds(std::string_view text) const {
    for (const auto& one : seen.check()) {
      if (one.find(text) != std::string::npos) return true;
    }
    return false;
  }

  workload what{small()};
  synthetic_dataset data{{.samples = 96, .features = 6, .classes = 4, .seed = 3, .noise = 0.4F}};
  history seen{what, std::make_shared<const sample_contents>(contents_of(data))};
  std::int64_t pid{100};
  std::shared_ptr<black_box> box{std::make_shared<black_box>()};
  std::uint64_t sums{0};
  float value{1}; // of every sum
};

TEST_CASE("history: a whole job is right, with a rollback too", "[history]") {
  player job;
  job.steps(1, 0, 4);
  CHECK(job.seen.check().empty());
  CHECK(job.seen.recomputed() == 0);
  player again;
  again.steps(1, 0, 3);
  again.steps(2, 1, 4);
  CHECK(again.seen.check().empty());
  CHECK(again.seen.recomputed() == 2);
}

TEST_CASE("history: who was cut off and comes by a sum when its job is over goes on with that job",
          "[history]") {
  player job;
  job.steps(1, 0, 2);
  job.seen.next_job();
  job.step(1, 2);
  job.pid = 101; // of the next job, whose generations begin anew
  job.seen.watch(job.pid, job.box);
  job.steps(1, 0, 4);
  CHECK(job.seen.check().empty());
}

TEST_CASE("history: a sum that nobody applied does not count", "[history]") {
  player job;
  job.steps(1, 0, 2);
  job.step(1, 2, 0, 0, false);
  job.steps(2, 2, 4);
  CHECK(job.seen.check().empty());
  CHECK(job.seen.recomputed() == 0);
}

TEST_CASE("history: finds a step that is missing, repeated or out of turn", "[history]") {
  player missing;
  missing.steps(1, 0, 3);
  CHECK(missing.finds("batch 4 never counted"));
  player repeated;
  repeated.steps(1, 0, 2);
  repeated.steps(1, 1, 4); // in the same generation
  CHECK(repeated.finds("follows batch"));
  player stale;
  stale.steps(1, 0, 1);
  stale.steps(2, 1, 3);
  stale.step(1, 3); // an ended generation goes on
  CHECK(stale.finds("after generation 2"));
}

TEST_CASE("history: finds samples that are not the step's", "[history]") {
  player shifted;
  shifted.steps(1, 0, 2);
  shifted.step(1, 2, 1);
  shifted.step(1, 3);
  CHECK(shifted.finds("is not the one in the order"));
  player lacking;
  lacking.steps(1, 0, 3);
  lacking.step(1, 3, 0, 2);
  CHECK(lacking.finds("6 samples instead of 8"));
}

TEST_CASE("history: finds a process that takes a sum and is at another step", "[history]") {
  player job;
  job.steps(1, 0, 4);
  job.box->step_applied = 2;
  job.seen.on_taken(job.sums, job.pid);
  CHECK(job.finds("and is at step 2"));
}

} // namespace
} // namespace troupe::sim
