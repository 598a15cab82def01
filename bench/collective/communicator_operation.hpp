// A communicator's sum, as the programs of `bench allreduce` measure it.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/collective/allreduce_program.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "runtime/seams/collective.hpp"

namespace troupe::bench {

// Of one that answers before `all_reduce` returns.
class communicator_operation final : public rank_operation {
public:
  communicator_operation(std::unique_ptr<communicator> member, const collective_shape& shape,
                         std::uint32_t rank)
      : member_{std::move(member)}
      , summands_{first_slots(shape.shards, shape.world).back()} {
    const auto range = shard_range(shape.shards, shape.world, rank);
    owned_ = owned_nodes(shape.shards, range.first, range.count).size();
  }
  std::vector<std::span<float>> inputs() override {
    std::vector<std::span<float>> out;
    for (std::size_t i = 0; i < owned_; ++i)
      out.push_back(member_->contribution(i));
    return out;
  }
  expected<std::span<const float>> run() override {
    expected<std::span<const float>> out{error{errc::internal, "no answer"}};
    member_->all_reduce([&out](const expected<reduction>& done) {
      if (done)
        out = done->sum;
      else
        out = done.failure();
    });
    return out;
  }
  std::uint32_t summands() const override { return summands_; }

private:
  std::unique_ptr<communicator> member_;
  std::uint32_t summands_;
  std::size_t owned_{0};
};

} // namespace troupe::bench
