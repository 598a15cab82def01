#include "runtime/policy/restart_intensity.hpp"

#include <algorithm>

namespace troupe {

bool restart_intensity::admit(time_point now) {
  if (spent_) return false;
  while (!recent_.empty() && now - recent_.front() >= policy_.period)
    recent_.pop_front();
  if (recent_.size() >= policy_.restarts_max) {
    spent_ = true;
    return false;
  }
  recent_.push_back(now);
  ++admitted_;
  return true;
}

bool same_failure_guard::record(const failure& happened) {
  const auto kind = class_of(happened.kind);
  if (kind == failure_class::lost_path || kind == failure_class::silent_process) return false;
  const auto known =
      std::ranges::find_if(seen_, [&](const seen& s) { return same_failure(s.what, happened); });
  if (known != seen_.end()) return ++known->times >= repeats_max;
  if (seen_.size() == kept_max) seen_.erase(seen_.begin());
  seen_.push_back({happened, 1});
  return false;
}

void same_failure_guard::committed(step_id step) {
  std::erase_if(seen_, [step](const seen& s) { return s.what.step <= step; });
}

} // namespace troupe
