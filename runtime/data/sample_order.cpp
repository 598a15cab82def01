#include "runtime/data/sample_order.hpp"

#include <algorithm>
#include <bit>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/data/limits.hpp"

namespace troupe {
namespace {

// A smaller network does not reach all orders of a handful of samples equally often.
constexpr unsigned domain_bits_min = 6;

// Round function: one multiplication spreads the key and the half over the upper bits, which are then used.
std::uint64_t mix(std::uint64_t half, std::uint64_t key) {
  std::uint64_t x = (half ^ key) * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ULL;
  return x >> 32;
}

} // namespace

epoch_order::epoch_order(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch)
    : samples_{samples}
    , epoch_{epoch} {
  invariant(samples >= 1 && samples <= limits::dataset_samples_max,
            "epoch_order: the number of samples is in range");
  const unsigned bits = std::max(domain_bits_min, static_cast<unsigned>(std::bit_width(samples - 1)));
  low_bits_ = bits / 2;
  low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
  high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
  const counter_rng keys{seed, stream_of("sample order")};
  for (unsigned round = 0; round < rounds; ++round)
    keys_[round] = keys.bits(epoch * rounds + round);
}

std::uint64_t epoch_order::encrypt(std::uint64_t value) const {
  std::uint64_t low = value & low_mask_;
  std::uint64_t high = value >> low_bits_;
  for (unsigned round = 0; round < rounds; round += 2) {
    high ^= mix(low, keys_[round]) & high_mask_;
    low ^= mix(high, keys_[round + 1]) & low_mask_;
  }
  return high << low_bits_ | low;
}

std::uint64_t epoch_order::operator()(std::uint64_t position) const {
  invariant(position < samples_, "epoch_order: the position lies inside the epoch");
  // Ends: the walk follows the cycle of a bijection that `position` itself lies on (SO-1).
  std::uint64_t index = encrypt(position);
  while (index >= samples_)
    index = encrypt(index);
  return index;
}

sample_order::sample_order(std::uint64_t samples, std::uint64_t seed)
    : samples_{samples}
    , seed_{seed}
    , current_{samples, seed, 0} {}

std::uint64_t sample_order::index_of(std::uint64_t running_number) {
  const std::uint64_t epoch = running_number / samples_;
  if (epoch != current_.epoch()) current_ = epoch_order{samples_, seed_, epoch};
  return current_(running_number % samples_);
}

} // namespace troupe
