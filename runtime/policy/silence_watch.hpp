// Silence watch: who among those that a sum waits for answers nothing any more, though no path has failed.
//
// In:       looks, one a heartbeat; answers. Out: whom to ask; who is silent.
// Runs on:  the event loop of a worker. Counts its own looks and reads no clock: a process that was stopped,
//           or whose clock jumps, blames nobody for it.
// Invariants:
//   SL-1    nobody is asked while this rank does not wait.
//   SL-2    who answers each question before `answer_looks` more looks is never silent.
//   SL-3    of one wait, a silent peer is told once.
// Why:      docs/design/0038-jobs-across-hosts.md
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "runtime/base/ids.hpp"

namespace troupe {

class silence_watch {
public:
  struct outcome {
    std::vector<incarnation_id> ask;
    std::vector<incarnation_id> silent;
  };
  explicit silence_watch(std::uint32_t answer_looks)
      : answer_looks_{answer_looks} {}

  // `waits`: long enough for asking.
  [[nodiscard]] outcome look(bool waits, const std::set<incarnation_id>& peers);
  void heard(incarnation_id who) { asked_.erase(who); }

private:
  std::uint32_t answer_looks_;
  std::map<incarnation_id, std::uint32_t> asked_; // looks since; no answer yet
  std::set<incarnation_id> told_;
};

} // namespace troupe
