#include "transports/ring/ring_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "runtime/policy/canonical_plan.hpp"
#include "runtime/policy/entry_list.hpp"
#include "runtime/policy/line_slice.hpp"
#include "runtime/policy/wire_format.hpp"
#include "transports/ring/limits.hpp"

namespace troupe {
namespace {

constexpr std::uint32_t exchange_slots_max = 4; // messages to one rank that nothing holds back

constexpr std::array<std::pair<ring_way, std::string_view>, 4> names{{{ring_way::alone, "alone"},
                                                                      {ring_way::exchange, "exchange"},
                                                                      {ring_way::doubling, "doubling"},
                                                                      {ring_way::slices, "slices"}}};

// Of a tree node of so many shards, at most.
std::size_t node_bytes(const collective_shape& shape, std::uint32_t shards) {
  if (shape.kept == 0) return wire_format{shape}.bytes({0, shape.elements});
  const auto others = shape.elements - std::min(shape.elements, shape.wire_elements);
  return list_bytes_max(shape.elements, shards * shape.kept + others);
}

// Of any rank, at most: shards, contributions.
struct share {
  std::uint32_t shards{0};
  std::uint32_t slots{0};
};
share largest_share(const collective_shape& shape) {
  if (shape.cuts.empty()) // rank 0's (CP-1)
    return {(shape.shards + shape.world - 1) / shape.world, first_slots(shape.shards, shape.world)[1]};
  share most;
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    const auto held = shape.cuts[rank + 1] - shape.cuts[rank];
    const auto nodes = owned_nodes(shape.shards, shape.cuts[rank], held).size();
    most = {std::max(most.shards, held), std::max(most.slots, static_cast<std::uint32_t>(nodes))};
  }
  return most;
}

// A rank's contribution, likewise.
std::size_t part_bytes(const collective_shape& shape) {
  return node_bytes(shape, largest_share(shape).shards);
}

// What one rank spends at most, in microseconds.
double cost_of(ring_way way, const collective_shape& shape) {
  const auto bytes = static_cast<double>(part_bytes(shape));
  const auto sum_bytes = static_cast<double>(node_bytes(shape, shape.shards));
  const auto others = static_cast<double>(shape.world) - 1;
  const auto slots = static_cast<double>(largest_share(shape).slots);
  switch (way) {
  case ring_way::alone:
    return 0;
  case ring_way::exchange:
    return limits::ring_round_us +
           2 * others * slots * (limits::ring_message_us + bytes / limits::ring_bytes_per_us);
  case ring_way::doubling:
    return static_cast<double>(std::bit_width(shape.world) - 1) *
           (limits::ring_round_us + 2 * (limits::ring_message_us + bytes / limits::ring_bytes_per_us));
  case ring_way::slices:
    return 4 * limits::ring_round_us + 2 * others * (slots + 1) * limits::ring_transfer_us +
           2 * others / (others + 1) * (slots * bytes + sum_bytes) / limits::ring_bytes_per_us;
  }
  return 0;
}

} // namespace

element_range slice_of(std::size_t elements, std::uint32_t world, std::uint32_t rank) {
  return line_slice(elements, sizeof(float), world, rank);
}

std::size_t pieces_of(const element_range& slice, std::size_t piece_elements) {
  return (slice.size() + piece_elements - 1) / piece_elements;
}

element_range piece_of(const element_range& slice, std::size_t piece_elements, std::size_t number) {
  const auto begin = slice.begin + number * piece_elements;
  return {begin, std::min(begin + piece_elements, slice.end)};
}

bool doubles(const collective_shape& shape) {
  if (shape.world == 1 || !std::has_single_bit(shape.world)) return false;
  const auto programs = combine_programs(cuts_of(shape));
  return programs.size() == 1 && programs[0].steps == combine_program(shape.world, shape.world).steps;
}

bool possible(ring_way way, const collective_shape& shape) {
  const bool message = part_bytes(shape) <= limits::ring_message_bytes_max &&
                       shape.elements * sizeof(float) <= limits::ring_loop_bytes;
  switch (way) {
  case ring_way::alone:
    return shape.world == 1;
  case ring_way::exchange:
    return shape.world > 1 && message && largest_share(shape).slots <= exchange_slots_max;
  case ring_way::doubling:
    return message && doubles(shape) && // partial sums of lists grow with each round
           (shape.kept == 0 || shape.elements * sizeof(float) <= limits::ring_message_bytes_max);
  case ring_way::slices:
    return shape.world > 1;
  }
  return false;
}

ring_way choose_way(const collective_shape& shape) {
  if (shape.world == 1) return ring_way::alone;
  auto best = ring_way::slices;
  for (const auto way : {ring_way::exchange, ring_way::doubling})
    if (possible(way, shape) && cost_of(way, shape) < cost_of(best, shape)) best = way;
  return best;
}

std::string_view to_string(ring_way way) {
  return std::ranges::find(names, way, &std::pair<ring_way, std::string_view>::first)->second;
}

std::optional<ring_way> parse_ring_way(std::string_view text) {
  const auto found = std::ranges::find(names, text, &std::pair<ring_way, std::string_view>::second);
  return found == names.end() ? std::nullopt : std::optional{found->first};
}

} // namespace troupe
