#include "runtime/train/shard_pass.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/base/invariant.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/train/flat_math.hpp"

namespace troupe {

// Hands out the places of one shard's gradients inside a contribution.
class shard_pass::sink final : public gradient_sink {
public:
  sink(const arena_layout& layout, std::span<float> into, std::span<std::uint8_t> ready)
      : layout_{layout}
      , into_{into}
      , ready_{ready} {
    std::ranges::fill(ready_, std::uint8_t{0});
  }
  std::span<float> gradient(parameter p) override {
    const auto& spec = layout_.parameters.at(p.index());
    return into_.subspan(spec.offset, spec.elements);
  }
  void ready(parameter p) override {
    if (ready_[p.index()] < 2) ++ready_[p.index()];
  }
  void require_all() const {
    for (std::size_t i = 0; i < ready_.size(); ++i)
      if (ready_[i] != 1)
        throw std::logic_error{"the model declared the gradient of '" + layout_.parameters[i].name +
                               "' ready " + (ready_[i] == 0 ? "never" : "more than once") +
                               " in one shard, not once"};
  }

private:
  const arena_layout& layout_;
  std::span<float> into_;
  std::span<std::uint8_t> ready_;
};

shard_pass::shard_pass(const parameter_store& store, std::uint32_t shards)
    : store_{store}
    , layout_{store.layout()}
    , shards_{shards}
    , scratch_{(local_buffers(shards) - 1) * elements() * sizeof(float)}
    , ready_(layout_.parameters.size()) {}

void shard_pass::plan(std::uint32_t rank, std::uint32_t world, communicator& into) {
  range_ = shard_range(shards_, world, rank);
  nodes_.clear();
  for (const auto& node : owned_nodes(shards_, range_.first, range_.count))
    nodes_.push_back({node, local_sum_steps(node)});
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto contribution = into.contribution(i);
    invariant(contribution.size() == elements(), "CO-1: a contribution has the elements asked for");
    std::ranges::fill(contribution, 0.0F);
  }
}

std::span<float> shard_pass::buffer(std::size_t index, std::span<float> contribution) const {
  return index == 0 ? contribution : scratch_.as<float>().subspan((index - 1) * elements(), elements());
}

void shard_pass::compute(model& kernels, const batch& from, std::uint64_t number, communicator& into) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto contribution = into.contribution(i);
    for (const auto& step : nodes_[i].steps) {
      const auto target = buffer(step.into, contribution);
      if (step.what == local_step::action::add)
        add_into(target, buffer(step.from, contribution));
      else
        compute_shard(kernels, from.shard(step.shard - range_.first), number, target);
    }
  }
}

bool shard_pass::finite(communicator& into) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!all_finite(into.contribution(i).first(layout_.part_elements))) return false;
  }
  return true;
}

void shard_pass::compute_shard(model& kernels, const batch_view& shard, std::uint64_t number,
                               std::span<float> into) {
  sink gradients{layout_, into, ready_};
  const auto result = kernels.train_shard(shard, store_, gradients);
  gradients.require_all();
  write_tail(into, {result.loss_sum, shard.samples, batch_tag(number)});
}

} // namespace troupe
