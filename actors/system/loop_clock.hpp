// Actor clock on the clock seam: CAF's time-outs and delayed messages, in real or simulated time.
//
// Runs on:  the event loop only (as `clock_seam` demands).
// Invariants:
//   AC-1    `now` is the seam's now: an actor system in simulation sees virtual time only.
//   AC-2    at most one seam timer is armed, never later than the earliest entry.
//   AC-3    entries due at the same time fire in the order in which they were set.
// A cancelled entry leaves its timer armed: it fires once, finds nothing, and is cheaper than a cancellation
// for every answered request.
#pragma once

#include <caf/detail/simple_actor_clock.hpp>

#include "runtime/seams/clock.hpp"

namespace troupe {

class loop_clock final : public caf::detail::simple_actor_clock {
public:
  explicit loop_clock(clock_seam& seam)
      : seam_{seam} {}
  ~loop_clock() override { disarm(); }

  [[nodiscard]] caf::actor_clock::time_point now() const noexcept override;
  void set_ordinary_timeout(caf::actor_clock::time_point due, caf::abstract_actor* self, caf::atom_value type,
                            std::uint64_t id) override;
  void set_multi_timeout(caf::actor_clock::time_point due, caf::abstract_actor* self, caf::atom_value type,
                         std::uint64_t id) override;
  void set_request_timeout(caf::actor_clock::time_point due, caf::abstract_actor* self,
                           caf::message_id id) override;
  void schedule_message(caf::actor_clock::time_point due, caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override;
  void schedule_message(caf::actor_clock::time_point due, caf::group target, caf::strong_actor_ptr sender,
                        caf::message content) override;
  void disarm(); // drops the timer; entries stay

private:
  void arm();
  void fire();

  clock_seam& seam_;
  timer_id timer_{0};
  caf::actor_clock::time_point armed_for_{};
};

} // namespace troupe
