// Bucket plan: which gradients go into the all-reduce together, and in which order.
//
// Backward ends with the parameters that were declared first, so buckets are filled from the last parameter
// down, whatever order a model really finishes in: the plan is a pure function of layout and size, and every
// rank has the same one. The last bucket and the contribution's tail go with the end of the sum.
//
// Invariants:
//   BP-1    buckets cover the gradient without gap or overlap, from its end down, cut between parameters.
//   BP-2    each but the last holds at least the bytes asked for; there are at most `buckets_max`.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "runtime/train/parameter_store.hpp"

namespace troupe {

struct bucket {
  element_range elements;
  std::size_t parameters{0}; // that must be final before it is
  bool operator==(const bucket&) const = default;
};

struct bucket_plan {
  std::vector<bucket> early;   // begun during backward, in this order
  std::vector<std::size_t> of; // by parameter: its bucket; early.size() for the last one
  static bucket_plan make(const arena_layout& layout, std::size_t bucket_bytes); // 0: one bucket
};

} // namespace troupe
