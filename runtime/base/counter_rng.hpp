// Counter-based random numbers: a pure function of (key, counter), so any value can be recomputed anywhere.
//
// Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11 (Philox4x32-10).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace troupe {

[[nodiscard]] constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                            std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

// 64-bit FNV-1a: turns a name into a stream number.
[[nodiscard]] constexpr std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

// The numbers of one stream, addressed by position. Stateless: `uniform(i)` is the same wherever it is asked.
class counter_rng {
public:
  constexpr counter_rng(std::uint64_t seed, std::uint64_t stream)
      : seed_{seed}
      , stream_{stream} {}

  [[nodiscard]] constexpr std::array<std::uint32_t, 4> block(std::uint64_t position) const {
    return philox({static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
                   static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
                  {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  }
  [[nodiscard]] constexpr std::uint64_t bits(std::uint64_t position) const {
    const auto words = block(position);
    return (std::uint64_t{words[1]} << 32) | words[0];
  }
  // In [0, 1), 24 bits of resolution.
  [[nodiscard]] constexpr float uniform(std::uint64_t position) const {
    return static_cast<float>(block(position)[0] >> 8) * 0x1.0p-24F;
  }

private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

} // namespace troupe
