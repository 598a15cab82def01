// Shard pass: computes the logical shards that a rank owns and adds them up along the canonical tree.
//
// Flow:     batch, parameters -> model.train_shard -> [shard pass] -> the communicator's contributions
// Owns:     scratch for the tree's local additions, allocated and touched once, for any number of ranks.
// Runs on:  the device's executor. No allocation in `compute`; `plan` allocates, once a generation.
// Fails:    what the model throws passes through; std::logic_error where it left a gradient out.
// Invariants:
//   SH-1    every shard of the rank's range is computed exactly once a pass, in increasing order.
//   SH-2    padding of a contribution is zero, so sums and norms may run over it.
//   SH-3    each parameter's gradient was declared ready exactly once a shard.
//   SH-4    a bucket is begun once its gradients of the rank's last shard are ready and added up; it is not
//           written again before the next pass. Buckets are begun in order, by ranks without shards too.
//   SH-5    the gradient of every shard, and of every node added up here, is rounded to the wire's format.
//   SH-6    with Top-K a shard's gradient is cut to its kept entries before anything is added to it, and its
//           residual changes once a global batch.
// Why:      docs/design/0004-step-engine.md, docs/design/0046-top-k.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/data/batch.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "runtime/policy/wire_format.hpp"
#include "runtime/seams/collective.hpp"
#include "runtime/train/bucket_plan.hpp"
#include "runtime/train/contribution.hpp"
#include "runtime/train/model.hpp"
#include "runtime/train/parameter_store.hpp"

namespace troupe {

// What the sums of a step need to know; generation and world are to be filled in.
[[nodiscard]] collective_shape sum_shape(const arena_layout& layout, std::uint32_t shards, element_type wire,
                                         double top_k);

class shard_pass {
public:
  // `store` is frozen and outlives the pass.
  // Buckets of at least `bucket_bytes` are begun as they get ready; 0: none is. Gradients are rounded to
  // `wire` (SH-5). `top_k` of a gradient's entries are kept; 0: all are. They are chosen among all, so then
  // nothing is begun before the end.
  shard_pass(const parameter_store& store, std::uint32_t shards, std::size_t bucket_bytes = 0,
             element_type wire = element_type::float32, double top_k = 0);

  // What the collective's shape needs to know beside generation and world.
  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] std::size_t elements() const { return contribution_elements(layout_.part_elements); }
  [[nodiscard]] shard_interval range() const { return range_; }
  // Of `shard`, in the arena; with Top-K only.
  [[nodiscard]] std::span<float> residual(std::uint32_t shard) const;

  // Takes the rank's place in a new generation; zeroes its contributions (SH-2).
  void plan(std::uint32_t rank, std::uint32_t world, communicator& into);
  // One global batch: `from` holds the rank's shards. `number` is the running number of the global batch.
  void compute(model& kernels, const batch& from, std::uint64_t number, communicator& into);
  // Is every gradient finite that this rank put into `into` last?
  [[nodiscard]] bool finite(communicator& into) const;

private:
  class sink;
  class last_shard;
  struct node_plan {
    shard_interval node;
    std::vector<local_step> steps;
  };
  [[nodiscard]] std::span<float> buffer(std::size_t index, std::span<float> contribution) const;
  void compute_shard(model& kernels, const batch_view& shard, std::uint64_t number, std::span<float> into,
                     last_shard* last = nullptr);
  void cut(std::uint32_t shard, std::span<float> gradient) const;
  void add(const local_step& step, std::span<float> contribution, element_range part) const;

  const parameter_store& store_;
  const arena_layout& layout_;
  std::uint32_t shards_;
  shard_interval range_;
  std::vector<node_plan> nodes_;
  touched_memory scratch_;
  std::vector<std::uint8_t> ready_; // by parameter: how often declared ready in the current shard
  collective_shape shape_;
  wire_format format_;
  bucket_plan buckets_;
  std::vector<std::size_t> missing_; // by early bucket: gradients of the last shard that are not ready
};

} // namespace troupe
