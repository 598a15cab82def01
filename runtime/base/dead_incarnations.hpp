// The incarnations whose path has ended, bounded: the oldest is forgotten first.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

#include "runtime/base/ids.hpp"

namespace troupe {

class dead_incarnations {
public:
  explicit dead_incarnations(std::size_t count_max)
      : count_max_{count_max} {}

  void add(incarnation_id who) {
    if (!known_.insert(who).second) return;
    order_.push_back(who);
    if (order_.size() <= count_max_) return;
    known_.erase(order_.front());
    order_.pop_front();
  }
  [[nodiscard]] bool contains(incarnation_id who) const { return known_.contains(who); }

private:
  std::size_t count_max_;
  std::unordered_set<incarnation_id> known_;
  std::deque<incarnation_id> order_;
};

} // namespace troupe
