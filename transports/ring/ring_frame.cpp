#include "transports/ring/ring_frame.hpp"

#include <cstring>

namespace troupe {
namespace {

struct header {
  std::uint64_t generation;
  std::uint64_t arrived;
  std::uint32_t index;
  std::uint32_t what;
};
static_assert(sizeof(header) == ring_header_bytes);

} // namespace

void encode_header(const ring_frame& frame, std::span<std::byte> into) {
  const header head{frame.generation, frame.arrived, frame.index, static_cast<std::uint32_t>(frame.what)};
  std::memcpy(into.data(), &head, sizeof head);
}

std::optional<ring_frame> decode_ring_frame(std::span<const std::byte> payload) {
  header head{};
  if (payload.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, payload.data(), sizeof head);
  const auto values = payload.subspan(sizeof head);
  const bool known = head.what >= static_cast<std::uint32_t>(ring_word::here) &&
                     head.what <= static_cast<std::uint32_t>(ring_word::group_ended);
  if (!known) return std::nullopt;
  return ring_frame{static_cast<ring_word>(head.what), head.index, head.generation, head.arrived, values};
}

std::uint64_t encode(const ring_transfer& what) {
  return (what.generation & ring_transfer::generation_mask) << 36U |
         (what.sum & ring_transfer::sum_mask) << 24U | std::uint64_t{what.finished} << 23U |
         std::uint64_t{what.group} << 22U | (what.place & ring_transfer::place_mask);
}

std::optional<ring_transfer> decode_ring_transfer(std::uint64_t number) {
  if (number >> 56U != 0) return std::nullopt;
  return ring_transfer{number >> 36U, number >> 24U & ring_transfer::sum_mask, (number >> 23U & 1U) != 0,
                       static_cast<std::uint32_t>(number & ring_transfer::place_mask),
                       (number >> 22U & 1U) != 0};
}

} // namespace troupe
