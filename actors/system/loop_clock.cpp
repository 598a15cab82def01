#include "actors/system/loop_clock.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

using caf_time = caf::actor_clock::time_point;

} // namespace

caf_time loop_clock::now() const noexcept {
  return caf_time{std::chrono::duration_cast<caf_time::duration>(seam_.now().time_since_epoch())};
}

void loop_clock::set_ordinary_timeout(caf_time due, caf::abstract_actor* self, caf::atom_value type,
                                      std::uint64_t id) {
  simple_actor_clock::set_ordinary_timeout(due, self, type, id);
  arm();
}

void loop_clock::set_multi_timeout(caf_time due, caf::abstract_actor* self, caf::atom_value type,
                                   std::uint64_t id) {
  simple_actor_clock::set_multi_timeout(due, self, type, id);
  arm();
}

void loop_clock::set_request_timeout(caf_time due, caf::abstract_actor* self, caf::message_id id) {
  simple_actor_clock::set_request_timeout(due, self, id);
  arm();
}

void loop_clock::schedule_message(caf_time due, caf::strong_actor_ptr receiver,
                                  caf::mailbox_element_ptr content) {
  simple_actor_clock::schedule_message(due, std::move(receiver), std::move(content));
  arm();
}

void loop_clock::schedule_message(caf_time due, caf::group target, caf::strong_actor_ptr sender,
                                  caf::message content) {
  simple_actor_clock::schedule_message(due, std::move(target), std::move(sender), std::move(content));
  arm();
}

void loop_clock::disarm() {
  if (timer_ != 0) seam_.cancel(timer_);
  timer_ = 0;
}

void loop_clock::arm() {
  if (schedule_.empty()) return;
  const auto due = schedule_.begin()->first;
  if (timer_ != 0 && armed_for_ <= due) return; // AC-2
  disarm();
  armed_for_ = due;
  const auto delay = std::max(std::chrono::duration_cast<duration>(due - now()), duration{0});
  timer_ = seam_.call_after(delay, [this] { fire(); });
}

void loop_clock::fire() {
  timer_ = 0;
  trigger_expired_timeouts();
  arm();
}

} // namespace troupe
