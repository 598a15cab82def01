#include "runtime/policy/silence_watch.hpp"

namespace troupe {

silence_watch::outcome silence_watch::look(bool waits, const std::set<incarnation_id>& peers) {
  outcome out;
  ++unled_looks_;
  if (!waits || !hears_director()) {
    asked_.clear();
    told_.clear();
    return out;
  }
  for (const auto who : peers) {
    const auto [since, fresh] = asked_.try_emplace(who, 0);
    if (fresh) {
      out.ask.push_back(who);
    } else if (++since->second > answer_looks_ && told_.insert(who).second) {
      out.silent.push_back(who);
    }
  }
  return out;
}

} // namespace troupe
