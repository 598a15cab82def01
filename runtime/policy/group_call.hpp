// Group call: whether a call fits its group, and whether the members' calls fit together.
//
// Each member shows the others a descriptor before anything moves. A call of all members fits if all
// descriptors are equal; a send fits one receive of the same type and size.
//
// Flow:     group_operation -> check_call -> describe -> (shown to the others) -> check_alike, check_partners
// Runs on:  anywhere: pure functions. What others have shown is only compared and printed, never trusted.
// Fails:    bad_argument, with the first rank that differs and both calls; the same text at every member.
// Why:      docs/design/0033-rank-groups.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/seams/rank_group.hpp"

namespace troupe {

// Fixed in size and free of pointers: it may lie in memory that processes share. What a call has no use for
// is zero.
struct call_signature {
  std::uint64_t elements{0}; // of a split: how many ranks
  std::uint64_t ranks{0};    // of a split: a digest of them
  std::uint32_t peer{0};
  std::uint8_t call{0}; // a group_call, or split_call
  std::uint8_t type{0};
  std::uint8_t op{0};
  std::uint8_t unused{0};
  bool operator==(const call_signature&) const = default;
};
inline constexpr std::uint8_t split_call = static_cast<std::uint8_t>(group_call::barrier) + 1;

// The parts of `elements` elements that a member of rank `rank` hands in and gets out.
struct call_parts {
  std::size_t in{0};
  std::size_t out{0};
};
[[nodiscard]] call_parts parts_of(const group_operation& what, std::uint32_t rank, std::uint32_t world);

[[nodiscard]] constexpr bool is_pairwise(group_call call) {
  return call == group_call::send || call == group_call::receive;
}
[[nodiscard]] constexpr bool reduces(group_call call) {
  return call == group_call::all_reduce || call == group_call::reduce_scatter;
}

// errc::bad_argument: kinds, sizes, peer or memory that no group of `world` has a use for at `rank`.
[[nodiscard]] expected<void> check_call(const group_operation& what, std::uint32_t rank, std::uint32_t world);
// errc::no_credit: a member that has so many calls under way makes no more (GR-6).
[[nodiscard]] expected<void> check_room(std::size_t under_way);
[[nodiscard]] expected<void> check_split(std::span<const std::uint32_t> ranks, std::uint32_t world);

[[nodiscard]] call_signature signature_of(const group_operation& what);
[[nodiscard]] call_signature signature_of_split(std::span<const std::uint32_t> ranks);
[[nodiscard]] std::string to_string(const call_signature& shown);

// `shown` by rank.
[[nodiscard]] expected<void> check_alike(std::span<const call_signature> shown);
// What `a` and `b` show in a call of the two, each to the other.
struct shown_call {
  std::uint32_t rank;
  call_signature call;
};
[[nodiscard]] expected<void> check_partners(const shown_call& a, const shown_call& b);

} // namespace troupe
