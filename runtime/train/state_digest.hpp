// State digest: one line that says whether two jobs are in the same state, to the bit.
//
// Digest (XXH3-128, runtime/base/digest.hpp) over these bytes, in this order; all numbers little-endian:
//   1. each parameter in declared order: its elements as float32, without padding
//   2. each optimizer slot in arena order: for each parameter in declared order, its elements as float32
//   3. uint32 length, then the optimizer's text (kind and settings), UTF-8
//   4. uint32 length, then the schedule's text, UTF-8
//   5. uint64 step: updates applied
//   6. uint64 sample cursor: samples consumed = step * accumulate * global_batch
// Nothing in it depends on the number of workers, on generations, or on time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/train/parameter_store.hpp"

namespace troupe {

struct training_position {
  std::uint64_t step{0};
  std::uint64_t samples_consumed{0};
};

[[nodiscard]] std::string state_digest(const arena_layout& layout, std::span<const float> arena,
                                       std::string_view optimizer_text, std::string_view schedule_text,
                                       training_position position);

} // namespace troupe
