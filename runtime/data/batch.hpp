// Batches: what the prefetcher hands to the step engine, as leased memory.
//
// A batch holds the samples of the logical shards that one rank owns at one step: shards
// [first_shard, first_shard + shard_count), each of `samples_per_shard` samples. Layout of the lease:
// inputs float32 [shard_count * samples_per_shard, features], 64-byte aligned, then labels uint8
// [shard_count * samples_per_shard].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/ids.hpp"

namespace troupe {

// One logical shard (training) or any run of samples (evaluation). Borrowed memory.
struct batch_view {
  std::size_t samples{0};
  std::size_t features{0};
  std::span<const float> inputs;        // [samples, features], row-major
  std::span<const std::uint8_t> labels; // [samples]
  std::uint64_t first_sample{0};        // running number of the first sample: step * global_batch + offset
};

struct batch {
  generation_id generation;
  step_id step; // the state this batch is applied to: it turns step k into k + 1
  std::uint32_t first_shard{0};
  std::uint32_t shard_count{0};
  std::uint32_t samples_per_shard{0};
  std::uint32_t features{0};
  std::uint64_t first_sample{0}; // of the first shard
  lease memory;

  [[nodiscard]] static std::size_t label_offset(std::size_t samples, std::size_t features) {
    return (samples * features * sizeof(float) + 63) / 64 * 64;
  }
  [[nodiscard]] static std::size_t bytes_for(std::size_t samples, std::size_t features) {
    return label_offset(samples, features) + samples;
  }
  // `index` counts the shards of this batch from 0.
  [[nodiscard]] batch_view shard(std::uint32_t index) const {
    const std::size_t total = std::size_t{shard_count} * samples_per_shard;
    const std::size_t begin = std::size_t{index} * samples_per_shard;
    const auto bytes = memory.bytes();
    const auto* inputs = reinterpret_cast<const float*>(bytes.data()) + begin * features;
    const auto* labels =
        reinterpret_cast<const std::uint8_t*>(bytes.data() + label_offset(total, features)) + begin;
    return {samples_per_shard,
            features,
            {inputs, std::size_t{samples_per_shard} * features},
            {labels, samples_per_shard},
            first_sample + begin};
  }
};

} // namespace troupe
