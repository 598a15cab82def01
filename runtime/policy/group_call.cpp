#include "runtime/policy/group_call.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "runtime/base/limits.hpp"

namespace troupe {

namespace {

constexpr std::string_view call_names[]{"all_reduce", "reduce_scatter", "all_gather",
                                        "broadcast",  "all_to_all",     "send",
                                        "receive",    "barrier",        "split"};
constexpr std::string_view type_names[]{"float32", "float64", "float16", "bfloat16", "int32", "int64"};
constexpr std::string_view op_names[]{"sum", "avg", "min", "max"};

// A number that another process wrote may name nothing.
std::string name(std::span<const std::string_view> names, std::uint8_t number) {
  return number < names.size() ? std::string{names[number]} : "kind " + std::to_string(number);
}

error misfit(std::string text) {
  return {errc::bad_argument, "rank group: " + std::move(text)};
}

bool known(const group_operation& what) {
  return what.call <= group_call::barrier && static_cast<std::size_t>(what.type) < element_types &&
         what.op <= reduce_op::max;
}

// Memory of another size, or partly the same, would be written before it is read.
bool overlap(std::span<const std::byte> in, std::span<const std::byte> out) {
  const std::less<const std::byte*> before;
  const bool apart = in.empty() || out.empty() || !before(in.data(), out.data() + out.size()) ||
                     !before(out.data(), in.data() + in.size());
  return !apart && (in.data() != out.data() || in.size() != out.size());
}

expected<void> check_size(const group_operation& what, std::string_view which, std::size_t found,
                          std::size_t parts) {
  const auto needed = parts * what.elements * size_of(what.type);
  if (found == needed) return {};
  return misfit(to_string(signature_of(what)) + ": '" + std::string{which} + "' has " +
                std::to_string(found) + " bytes, not " + std::to_string(needed));
}

} // namespace

call_parts parts_of(const group_operation& what, std::uint32_t rank, std::uint32_t world) {
  switch (what.call) {
  case group_call::all_reduce:
    return {1, 1};
  case group_call::reduce_scatter:
    return {world, 1};
  case group_call::all_gather:
    return {1, world};
  case group_call::broadcast:
    return {rank == what.peer ? 1U : 0U, 1};
  case group_call::all_to_all:
    return {world, world};
  case group_call::send:
    return {1, 0};
  case group_call::receive:
    return {0, 1};
  case group_call::barrier:
    return {0, 0};
  }
  return {0, 0};
}

expected<void> check_call(const group_operation& what, std::uint32_t rank, std::uint32_t world) {
  if (!known(what)) return misfit("a call, type or operation that does not exist");
  const auto refuse = [&](const std::string& why) { return misfit(to_string(signature_of(what)) + why); };
  if (what.elements > limits::bulk_bytes_max / size_of(what.type) / world)
    return refuse(" by " + std::to_string(world) + " ranks exceeds " +
                  std::to_string(limits::bulk_bytes_max) + " bytes");
  if ((is_pairwise(what.call) || what.call == group_call::broadcast) && what.peer >= world)
    return refuse(": there are " + std::to_string(world) + " ranks");
  if (is_pairwise(what.call) && what.peer == rank) return refuse(": that is the caller itself");
  const auto parts = parts_of(what, rank, world);
  if (parts.in > 0)
    if (auto fits = check_size(what, "in", what.in.size(), parts.in); !fits) return fits;
  if (parts.out > 0)
    if (auto fits = check_size(what, "out", what.out.size(), parts.out); !fits) return fits;
  if (parts.in > 0 && parts.out > 0 && overlap(what.in, what.out)) return refuse(": 'in' and 'out' overlap");
  return {};
}

expected<void> check_room(std::size_t under_way) {
  if (under_way < limits::group_calls_max) return {};
  return error{errc::no_credit, "rank group: " + std::to_string(limits::group_calls_max) +
                                    " calls are under way, and no member has more in one group; wait for a "
                                    "`done` before the next"};
}

expected<void> check_split(std::span<const std::uint32_t> ranks, std::uint32_t world) {
  const bool ascending =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>{}) == ranks.end();
  if (!ranks.empty() && ascending && ranks.back() < world) return {};
  return misfit("split: ranks ascend, without repetition, below " + std::to_string(world));
}

call_signature signature_of(const group_operation& what) {
  call_signature shown{.call = static_cast<std::uint8_t>(what.call)};
  if (what.call == group_call::barrier) return shown;
  shown.elements = what.elements;
  shown.type = static_cast<std::uint8_t>(what.type);
  if (reduces(what.call)) shown.op = static_cast<std::uint8_t>(what.op);
  if (is_pairwise(what.call) || what.call == group_call::broadcast) shown.peer = what.peer;
  return shown;
}

call_signature signature_of_split(std::span<const std::uint32_t> ranks) {
  call_signature shown{.elements = ranks.size(), .ranks = 0xcbf29ce484222325U, .call = split_call};
  for (const auto rank : ranks)
    shown.ranks = (shown.ranks ^ rank) * 0x100000001b3U; // FNV-1a
  return shown;
}

std::string to_string(const call_signature& shown) {
  auto text = name(call_names, shown.call);
  if (shown.call == split_call) return text + "(" + std::to_string(shown.elements) + " ranks)";
  const auto call = static_cast<group_call>(shown.call);
  if (call == group_call::barrier) return text;
  text += "(" + name(type_names, shown.type) + ", " + std::to_string(shown.elements) + " elements";
  if (reduces(call)) text += ", " + name(op_names, shown.op);
  if (is_pairwise(call) || call == group_call::broadcast)
    text += (call == group_call::send ? ", to rank " : ", from rank ") + std::to_string(shown.peer);
  return text + ")";
}

expected<void> check_alike(std::span<const call_signature> shown) {
  const auto other =
      std::find_if(shown.begin(), shown.end(), [&](const auto& call) { return call != shown[0]; });
  if (other == shown.end()) return {};
  return misfit("rank " + std::to_string(other - shown.begin()) + " calls " + to_string(*other) +
                ", rank 0 calls " + to_string(shown[0]));
}

expected<void> check_partners(const shown_call& a, const shown_call& b) {
  const auto& [low, high] = std::minmax(a, b, [](const auto& x, const auto& y) { return x.rank < y.rank; });
  auto mirrored = low.call;
  mirrored.peer = low.rank;
  mirrored.call ^=
      static_cast<std::uint8_t>(group_call::send) ^ static_cast<std::uint8_t>(group_call::receive);
  if (mirrored == high.call) return {};
  return misfit("rank " + std::to_string(high.rank) + " calls " + to_string(high.call) + ", rank " +
                std::to_string(low.rank) + " calls " + to_string(low.call));
}

} // namespace troupe
