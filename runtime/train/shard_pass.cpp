#include "runtime/train/shard_pass.hpp"

#include <algorithm>
#include <stdexcept>

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "runtime/train/flat_math.hpp"
#include "runtime/train/limits.hpp"
#include "runtime/train/top_k.hpp"

namespace troupe {

collective_shape sum_shape(const arena_layout& layout, std::uint32_t shards, element_type wire,
                           double top_k) {
  return {.shards = shards,
          .elements = contribution_elements(layout.part_elements),
          .group_bytes = top_k == 0 ? 0 : limits::gather_bytes,
          .wire = wire,
          .wire_elements = layout.part_elements,
          .kept = kept_entries(layout, top_k)};
}

// The rank's last shard: what of it is ready goes on while the rest is still computed (SH-4).
class shard_pass::last_shard {
public:
  // `additions` follow the shard; `contribution` is what they lead to.
  last_shard(shard_pass& pass, communicator& into, std::span<float> contribution, std::span<float> shard,
             std::span<const local_step> additions)
      : pass_{pass}
      , into_{into}
      , contribution_{contribution}
      , shard_{shard}
      , additions_{additions}
      , low_{pass.layout_.part_elements} {
    const auto& early = pass_.buckets_.early;
    std::ranges::transform(early, pass_.missing_.begin(), &bucket::parameters);
  }
  void ready(std::size_t parameter) {
    const auto& early = pass_.buckets_.early;
    const auto which = pass_.buckets_.of[parameter];
    if (which == early.size() || --pass_.missing_[which] != 0) return;
    for (; begun_ < early.size() && pass_.missing_[begun_] == 0; ++begun_) {
      const auto part = early[begun_].elements;
      const bool too_soon = TROUPE_PLANTED("shard_pass.begun_before_added");
      if (!too_soon) add_up(part);
      low_ = part.begin;
      into_.begin(part, {});
      if (too_soon) add_up(part);
    }
  }
  // All is ready: what no early bucket holds.
  void finish() {
    add_up({0, low_});
    add_up({pass_.layout_.part_elements, pass_.elements()});
  }

private:
  void add_up(element_range part) const {
    pass_.format_.round(shard_.subspan(part.begin, part.size()), part.begin);
    for (const auto& step : additions_)
      pass_.add(step, contribution_, part);
  }

  shard_pass& pass_;
  communicator& into_;
  std::span<float> contribution_;
  std::span<float> shard_; // its gradients
  std::span<const local_step> additions_;
  std::size_t begun_{0};
  std::size_t low_; // the first element that was begun
};

// Hands out the places of one shard's gradients inside a contribution.
class shard_pass::sink final : public gradient_sink {
public:
  sink(const arena_layout& layout, std::span<float> into, std::span<std::uint8_t> ready, last_shard* last)
      : layout_{layout}
      , into_{into}
      , ready_{ready}
      , last_{last} {
    std::ranges::fill(ready_, std::uint8_t{0});
  }
  std::span<float> gradient(parameter p) override {
    const auto& spec = layout_.parameters.at(p.index());
    return into_.subspan(spec.offset, spec.elements);
  }
  void ready(parameter p) override {
    auto& times = ready_[p.index()];
    if (times < 2) ++times;
    if (last_ != nullptr && times == 1) last_->ready(p.index());
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
  last_shard* last_; // none: other shards follow
};

shard_pass::shard_pass(const parameter_store& store, std::uint32_t shards, std::size_t bucket_bytes,
                       element_type wire, double top_k)
    : store_{store}
    , layout_{store.layout()}
    , shards_{shards}
    , scratch_{(local_buffers(shards) - 1) * elements() * sizeof(float)}
    , ready_(layout_.parameters.size())
    , shape_{sum_shape(layout_, shards, wire, top_k)}
    , format_{shape_}
    , buckets_{bucket_plan::make(layout_, top_k == 0 ? bucket_bytes : 0)}
    , missing_(buckets_.early.size()) {
  invariant(shape_.kept == 0 || layout_.slots.size() >= shards, "SH-6: each shard has a residual");
}

std::span<float> shard_pass::residual(std::uint32_t shard) const {
  return store_.slot(layout_.slots.size() - shards_ + shard);
}

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
  if (nodes_.empty())
    for (const auto& early : buckets_.early)
      into.begin(early.elements, {});
  const auto shard_of = [&](const local_step& step) { return from.shard(step.shard - range_.first); };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto contribution = into.contribution(i);
    const std::span<const local_step> steps{nodes_[i].steps};
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const auto& step = steps[at];
      const auto target = buffer(step.into, contribution);
      if (step.what == local_step::action::add) {
        add(step, contribution, {0, elements()});
      } else if (step.shard + 1 < range_.end()) {
        compute_shard(kernels, shard_of(step), number, target);
        cut(step.shard, target);
        format_.round(target, 0);
      } else {
        last_shard last{*this, into, contribution, target, steps.subspan(at + 1)};
        compute_shard(kernels, shard_of(step), number, target, &last);
        cut(step.shard, target);
        return last.finish();
      }
    }
  }
}

// SH-6
void shard_pass::cut(std::uint32_t shard, std::span<float> gradient) const {
  if (shape_.kept == 0) return;
  keep_largest(gradient.first(layout_.part_elements), residual(shard), shape_.kept);
}

void shard_pass::add(const local_step& step, std::span<float> contribution, element_range part) const {
  const auto of = [&](std::uint32_t index) {
    return buffer(index, contribution).subspan(part.begin, part.size());
  };
  add_into(of(step.into), of(step.from));
  format_.round(of(step.into), part.begin);
}

bool shard_pass::finite(communicator& into) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!all_finite(into.contribution(i).first(layout_.part_elements))) return false;
  }
  return true;
}

void shard_pass::compute_shard(model& kernels, const batch_view& shard, std::uint64_t number,
                               std::span<float> into, last_shard* last) {
  sink gradients{layout_, into, ready_, last};
  const auto result = kernels.train_shard(shard, store_, gradients);
  gradients.require_all();
  write_tail(into, {result.loss_sum, shard.samples, batch_tag(number)});
}

} // namespace troupe
