// Ring sum: one way of making the sums of a generation. What `ring_member` asks of it.
//
// Runs on:  the event loop, but for what it posts to the device itself.
// Invariants: those of ring_member.hpp; a frame or transfer that does not fit is dropped, or refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/seams/collective.hpp"
#include "transports/ring/ring_frame.hpp"

namespace troupe {

class ring_sum {
public:
  virtual ~ring_sum() = default;
  // This rank has called for sum `number`, which is one more than the last, or has begun a part of it.
  virtual void begin(std::uint64_t number) = 0;
  // Whether it does anything with parts. If so, `ready` says which elements of this rank's contributions are
  // final, more each time, and at last all; then `close`: nobody reads the sum before any more.
  [[nodiscard]] virtual bool in_parts() const { return false; }
  virtual void ready(element_range /*all_so_far*/) {}
  virtual void close() {}
  // After `begin`, once per sum and other rank: it is there, and may be sent to.
  virtual void meet(std::uint32_t rank) = 0;
  // Another rank has called for the sum that is under way here, or for the next one.
  virtual void on_arrival(std::uint32_t /*rank*/) {}
  virtual void on_part(std::uint32_t /*from*/, const ring_frame& /*part*/) {}
  // As transport_listener's calls; the generation fits.
  virtual std::span<std::byte> on_announced(std::uint32_t /*from*/, const ring_transfer& /*what*/,
                                            std::uint64_t /*bytes*/) {
    return {};
  }
  virtual void on_received(std::uint32_t /*from*/, const ring_transfer& /*what*/, bool /*whole*/) {}
};

} // namespace troupe
