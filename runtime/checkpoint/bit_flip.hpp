// Bit flip: damages a checkpoint on purpose (`--fault bit-flip:checkpoint=newest@step=80`).
//
// Runs on:  the storage executor. Never called but by fault injection.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct flipped_bit {
  step_id step;
  std::string path;
  std::uint64_t byte{0}; // in the file
  unsigned bit{0};
};

// Flips one bit in the middle of the parameters' data of version `which`: "newest" (of those with a manifest)
// or a step. errc::not_found where there is none, bad_argument for another `which`.
[[nodiscard]] expected<flipped_bit> flip_bit(storage& files, const std::string& directory,
                                             std::string_view which);

} // namespace troupe
