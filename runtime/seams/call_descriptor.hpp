// Call descriptor: what a rank calls between ranks, without the data. Two of them either fit or differ in
// something that can be named: who compares them (a group before it exchanges anything, the flight recorder
// after a hang) says it in the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/seams/rank_group.hpp"

namespace troupe {

// The canonical sum of a communicator, and the calls of a rank group.
enum class collective_call : std::uint8_t {
  sum,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  send,
  receive,
  barrier,
};
inline constexpr std::size_t collective_calls = 9;
inline constexpr std::size_t reduce_ops = 4;

[[nodiscard]] constexpr collective_call call_of(group_call call) {
  return static_cast<collective_call>(1 + static_cast<std::uint8_t>(call));
}
[[nodiscard]] constexpr bool between_two(collective_call call) {
  return call == collective_call::send || call == collective_call::receive;
}

struct call_descriptor {
  collective_call call{collective_call::sum};
  element_type type{element_type::float32};
  reduce_op op{reduce_op::sum};
  std::uint32_t peer{0}; // root of a broadcast; the other one of send and receive
  std::uint64_t elements{0};
};
[[nodiscard]] call_descriptor describe(const group_operation& what);

[[nodiscard]] std::string_view to_string(collective_call call);
[[nodiscard]] std::string_view to_string(element_type type);
[[nodiscard]] std::string_view to_string(reduce_op op);
// "all_reduce of 4096 float32, max"; "broadcast of 3 int64 from rank 2"; "barrier".
[[nodiscard]] std::string to_text(const call_descriptor& what);

enum class call_difference : std::uint8_t { none, call, type, op, root, size };
// The first thing in which two members' calls of one number do not fit. A send fits the receive of its peer.
[[nodiscard]] call_difference difference(const call_descriptor& ours, const call_descriptor& theirs);
// In one line: "another size: broadcast of 3 int64 from rank 0, and broadcast of 4 int64 from rank 0".
// Empty: they fit.
[[nodiscard]] std::string explain_difference(const call_descriptor& ours, const call_descriptor& theirs);
[[nodiscard]] std::string_view to_string(call_difference what); // "another size"; "the same call"

} // namespace troupe
