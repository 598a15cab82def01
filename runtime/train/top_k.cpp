#include "runtime/train/top_k.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "runtime/base/invariant.hpp"

namespace troupe {

namespace {

// Magnitudes compare as integers do, without the sign: NaN > infinity > all else.
std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
}

// Where the kept entries end: all above `least`, and the first `equal` of those that are it.
struct cut {
  std::uint32_t least{0};
  std::size_t equal{0};
};

// One digit of `least`: that of the entry which `wanted` others, counted from the largest, leave out.
template <std::size_t Digits>
std::uint32_t digit_of(const std::array<std::uint32_t, Digits>& counts, std::size_t& wanted) {
  auto digit = static_cast<std::uint32_t>(Digits) - 1;
  for (; digit > 0 && counts[digit] < wanted; --digit)
    wanted -= counts[digit];
  return digit;
}

// By digits of 11, 10 and 10 bits, from the highest.
cut find_cut(std::span<const float> values, std::size_t wanted) {
  std::array<std::uint32_t, 2048> high{};
  for (const auto value : values)
    ++high[magnitude(value) >> 20U];
  auto least = digit_of(high, wanted);
  for (int lower = 0; lower < 2; ++lower) {
    std::array<std::uint32_t, 1024> counts{};
    const auto shift = lower == 0 ? 10U : 0U;
    for (const auto value : values)
      if (magnitude(value) >> (shift + 10U) == least) ++counts[magnitude(value) >> shift & 1023U];
    least = least << 10U | digit_of(counts, wanted);
  }
  return {least, wanted};
}

} // namespace

std::size_t kept_entries(const arena_layout& layout, double fraction) {
  if (fraction == 0) return 0;
  std::size_t entries = 0;
  for (const auto& spec : layout.parameters)
    entries += spec.elements;
  const auto kept = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(entries)));
  return std::clamp<std::size_t>(kept, 1, entries);
}

void keep_largest(std::span<float> gradient, std::span<float> residual, std::size_t kept) noexcept {
  invariant(gradient.size() == residual.size() && kept > 0 && kept <= gradient.size(),
            "TK-1: a residual is as long as its gradient, and some entries are kept");
  for (std::size_t i = 0; i < residual.size(); ++i)
    residual[i] += gradient[i];
  auto [least, equal] = find_cut(residual, kept);
  for (std::size_t i = 0; i < residual.size(); ++i) {
    const auto size = magnitude(residual[i]);
    const bool tied = size == least && equal > 0;
    if (tied) --equal;
    const bool keep = size > least || tied;
    gradient[i] = keep ? residual[i] : 0.0F;
    residual[i] = keep ? 0.0F : residual[i];
  }
}

void freeze_state(parameter_store& store, const optimizer& rule, std::uint32_t shards, double fraction) {
  std::vector<std::string> names;
  for (const auto slot : rule.slot_names())
    names.emplace_back(slot);
  for (std::uint32_t shard = 0; fraction != 0 && shard < shards; ++shard)
    names.push_back("residual_" + std::to_string(shard));
  const std::vector<std::string_view> views{names.begin(), names.end()};
  store.freeze(views);
}

} // namespace troupe
