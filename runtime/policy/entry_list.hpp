// Entry list: values of which most are zero, in fewer bytes.
//
// A list is the number of entries, then each one: how many zeros lie between it and the one before, and its
// value. Numbers are LEB128, values are float32 as they lie in memory. Where a list would not be shorter, all
// values travel instead: what is as long as all of them is all of them.
//
// Runs on:  anywhere; pure, no allocation.
// Invariants:
//   EL-1    unpacking gives back every value to the bit; only +0 is no entry.
//   EL-2    what is packed is never longer than the values, and never empty unless they are.
//   EL-3    bytes that no `pack_entries` makes are refused, or are some values: nothing else is written.
// Why:      docs/design/0046-top-k.md
#pragma once

#include <cstddef>
#include <span>

namespace troupe {

// Into `to`, which has room for all values; returns the bytes written.
[[nodiscard]] std::size_t pack_entries(std::span<const float> values, std::byte* to);
// False: refused; `values` mean nothing then.
[[nodiscard]] bool unpack_entries(std::span<const std::byte> from, std::span<float> values);
// The most bytes that `entries` of so many `elements` take.
[[nodiscard]] std::size_t list_bytes_max(std::size_t elements, std::size_t entries);

} // namespace troupe
