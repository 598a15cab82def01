// The ways of ring_plan.hpp, as classes. Private to this room.
#pragma once

#include <memory>

#include "transports/ring/ring_plan.hpp"
#include "transports/ring/ring_sum.hpp"

namespace troupe {

class ring_member;

// `owner` outlives it. `alone` needs none: null. On the device; throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<ring_sum> make_ring_exchange(ring_member& owner);
[[nodiscard]] std::unique_ptr<ring_sum> make_ring_doubling(ring_member& owner);
[[nodiscard]] std::unique_ptr<ring_sum> make_ring_slices(ring_member& owner, const ring_pieces& pieces);

[[nodiscard]] inline std::unique_ptr<ring_sum> make_ring_sum(ring_way way, ring_member& owner,
                                                             const ring_pieces& pieces) {
  switch (way) {
  case ring_way::alone:
    return nullptr;
  case ring_way::exchange:
    return make_ring_exchange(owner);
  case ring_way::doubling:
    return make_ring_doubling(owner);
  case ring_way::slices:
    return make_ring_slices(owner, pieces);
  }
  return nullptr;
}

} // namespace troupe
