#include "runtime/policy/entry_list.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace troupe {
namespace {

constexpr std::size_t value_bytes = sizeof(float);

std::size_t number_bytes(std::size_t number) {
  return std::max<std::size_t>(1, (std::bit_width(number) + 6U) / 7U);
}

std::byte* write_number(std::size_t number, std::byte* to) {
  for (; number >= 128; number >>= 7U)
    *to++ = static_cast<std::byte>(number | 128U);
  *to++ = static_cast<std::byte>(number);
  return to;
}

std::optional<std::size_t> read_number(std::span<const std::byte>& from) {
  std::size_t number = 0;
  for (unsigned shift = 0; !from.empty() && shift < 63; shift += 7) {
    const auto part = std::to_integer<std::size_t>(from.front());
    from = from.subspan(1);
    number |= (part & 127U) << shift;
    if (part < 128) return number;
  }
  return std::nullopt;
}

bool is_entry(float value) {
  return std::bit_cast<std::uint32_t>(value) != 0;
}

} // namespace

std::size_t list_bytes_max(std::size_t elements, std::size_t entries) {
  entries = std::min(entries, elements);
  return std::min(elements * value_bytes,
                  number_bytes(entries) + entries * (number_bytes(elements) + value_bytes));
}

std::size_t pack_entries(std::span<const float> values, std::byte* to) {
  const auto whole = values.size_bytes();
  const auto all = [&] {
    if (whole > 0) std::memcpy(to, values.data(), whole);
    return whole;
  };
  const auto entries = static_cast<std::size_t>(std::ranges::count_if(values, is_entry));
  auto used = number_bytes(entries);
  if (used + entries * (1 + value_bytes) >= whole) return all();
  auto* at = write_number(entries, to);
  std::size_t zeros = 0;
  for (const auto value : values) {
    if (!is_entry(value)) {
      ++zeros;
      continue;
    }
    used += number_bytes(zeros) + value_bytes;
    if (used >= whole) return all();
    at = write_number(zeros, at);
    std::memcpy(at, &value, value_bytes);
    at += value_bytes;
    zeros = 0;
  }
  return used;
}

bool unpack_entries(std::span<const std::byte> from, std::span<float> values) {
  if (from.size() == values.size_bytes()) {
    if (!from.empty()) std::memcpy(values.data(), from.data(), from.size());
    return true;
  }
  std::ranges::fill(values, 0.0F);
  const auto entries = read_number(from);
  if (!entries || *entries > values.size()) return false;
  std::size_t at = 0;
  for (std::size_t i = 0; i < *entries; ++i, ++at) {
    const auto zeros = read_number(from);
    if (!zeros || *zeros >= values.size() - at || from.size() < value_bytes) return false;
    at += *zeros;
    std::memcpy(&values[at], from.data(), value_bytes);
    from = from.subspan(value_bytes);
  }
  return from.empty();
}

} // namespace troupe
