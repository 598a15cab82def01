#include "runtime/faults/held_queue.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/faults/limits.hpp"

namespace troupe {

held_queue::held_queue(clock_seam& clock, const fault_switches& switches, const timed_switch& cut)
    : clock_{clock}
    , switches_{switches}
    , cut_{cut} {}

held_queue::~held_queue() {
  clock_.cancel(timer_);
}

bool held_queue::holds_back() const {
  const auto now = clock_.now();
  return !items_.empty() || switches_.passes(cut_, now) > now;
}

expected<void> held_queue::hold(incarnation_id peer, std::size_t bytes, carried what) {
  if (bytes_ + bytes > limits::held_bytes_max)
    return error{errc::no_credit, "an injected fault holds " + std::to_string(bytes_) +
                                      " bytes back; accepted: " + std::to_string(limits::held_bytes_max)};
  const auto due = switches_.passes(cut_, clock_.now());
  items_.push_back({items_.empty() ? due : std::max(due, items_.back().due), peer, bytes, std::move(what)});
  bytes_ += bytes;
  if (timer_ == 0) set_timer();
  return {};
}

void held_queue::drop(incarnation_id peer, const error& cause) {
  std::vector<carried> dropped;
  for (auto& one : items_) {
    if (one.peer != peer) continue;
    bytes_ -= one.bytes;
    dropped.push_back(std::move(one.what));
  }
  std::erase_if(items_, [peer](const item& one) { return one.peer == peer; });
  for (auto& what : dropped)
    what(cause); // HQ-2
}

// What is due passes, unless a further cut has begun by now.
void held_queue::let_pass() {
  timer_ = 0;
  while (!items_.empty()) {
    const auto now = clock_.now();
    auto& next = items_.front();
    if (cut_.on(now)) next.due = std::max(next.due, cut_.until());
    if (next.due > now) break;
    auto what = take_front();
    what(expected<void>{});
  }
  if (!items_.empty() && timer_ == 0) set_timer();
}

held_queue::carried held_queue::take_front() {
  auto what = std::move(items_.front().what);
  bytes_ -= items_.front().bytes;
  items_.pop_front();
  return what;
}

void held_queue::set_timer() {
  const auto due = items_.front().due;
  if (due == time_point::max()) return; // for ever
  timer_ = clock_.call_after(std::max(due - clock_.now(), duration{0}), [this] { let_pass(); });
}

} // namespace troupe
