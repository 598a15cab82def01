// Silence watch: who among those that a sum waits for answers nothing any more, though no path has failed.
//
// In:       looks, one a heartbeat; answers; signs of the director. Out: whom to ask; who is silent.
// Runs on:  the event loop of a worker. Counts its own looks and reads no clock: a process that was stopped,
//           or whose clock jumps, blames nobody for it.
// Invariants:
//   SL-1    nobody is asked while this rank does not wait.
//   SL-2    who answers each question before `answer_looks` more looks is never silent.
//   SL-3    of one wait, a silent peer is told once.
//   SL-4    who has not heard its director for half of `answer_looks` looks may be the one that is deaf: it
//           asks nobody, and what it asked before counts no more.
// Why:      docs/design/0038-jobs-across-hosts.md, docs/design/0055-who-accuses.md
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
  void heard_director() { unled_looks_ = 0; }
  [[nodiscard]] bool hears_director() const { return unled_looks_ <= answer_looks_ / 2; }

private:
  std::uint32_t answer_looks_;
  std::uint32_t unled_looks_{0};                  // since the director was heard
  std::map<incarnation_id, std::uint32_t> asked_; // looks since; no answer yet
  std::set<incarnation_id> told_;
};

} // namespace troupe
