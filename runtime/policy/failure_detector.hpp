// Failure detector: tells dead, hung and slow apart, from heartbeats and progress.
//
// Flow:     heartbeats, path errors, time -> [failure_detector] -> verdicts -> membership
// Owns:     one lease for each incarnation it watches. A verdict is advice: only a new generation declares
//           anyone dead.
// Runs on:  whoever owns it (the director's event loop); `now` is an argument and never goes backwards.
// Invariants:
//   FD-1    who beats at least every `lease` (less one heartbeat and one look) is never lease_expired.
//   FD-2    who falls silent gets exactly one lease_expired, at most lease + tick_interval after its last
//           heartbeat, and so in less than 2 x detect_after (an observer's stall excepted, FD-4).
//   FD-3    a path error alone is no verdict: only with `path_grace` of silence after it. A heartbeat
//           clears it.
//   FD-4    a stall of the observer expires nobody: time in which it did not look is no silence, but for one
//           heartbeat of it; and once per silence there is time to hear who spoke meanwhile. Counted.
//   FD-5    hung needs heartbeats that arrive and no step for longer than hang_bound, never below hang_floor.
//   FD-6    who waits in a collective for another rank is not the one that is hung; who stands before it is.
//   FD-7    a straggler is slower than its peers' median by `straggler_factor` for `straggler_steps` samples.
//   FD-8    each verdict is given once: per incarnation, per step stuck, per slow spell.
//   FD-9    between two generations nobody is hung: who waits there is told by its lease and its deadlines.
//   FD-10   what a member said before another one was seen to step is no evidence of a hang: it may have
//           stepped too.
// Why:      docs/design/0010-failure-detection.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"
#include "runtime/policy/timeouts.hpp"
#include "runtime/seams/call_descriptor.hpp"

namespace troupe {

enum class activity : std::uint8_t {
  holding,          // between generations, or told to wait: nothing is expected of it
  loading,          // state or data set: has its own deadline
  evaluating,       // has its own deadline
  waiting_for_data, // the rest make up a step and are judged
  computing,
  in_collective,
};
[[nodiscard]] std::string_view to_string(activity doing);

// What a heartbeat says about the step loop. Durations, not times: clocks of two hosts do not compare.
struct progress {
  step_id step_applied{};
  step_id step_started{}; // the step being computed (1-based); equals step_applied between steps
  activity doing{activity::holding};
  duration doing_for{}; // in this activity, when the heartbeat was sent
  duration step_busy{}; // own time (data, compute, apply) of the last whole step, without waiting for peers
  std::uint64_t arrivals{0};                  // meetings of the generation's collective that it has reached
  collective_call call{collective_call::sum}; // the newest call between ranks
  std::uint64_t call_number{0};               // of it in its group; 0: none yet
};

struct verdict {
  enum class kind : std::uint8_t {
    lease_expired,   // dead, stopped, or cut off
    hung,            // this rank holds everybody up
    collective_hung, // every rank is inside the same collective and none comes out
    straggler,       // slower than its peers; advice only
  };
  kind what{kind::lease_expired};
  incarnation_id who{};
  rank_id rank{};
  step_id step{};        // that it was computing
  time_point since{};    // last heartbeat, last progress, or first slow sample
  std::string text{};    // one line: rank, what, in which call between ranks, since when, the bound
  double factor{0};      // straggler: own time of a step / that of its peers
  bool path_lost{false}; // lease_expired: a path error came first
};
[[nodiscard]] std::string_view to_string(verdict::kind what);

struct detector_settings {
  double straggler_factor{2.0};
  std::uint32_t straggler_steps{5};
  duration straggler_excess_min{std::chrono::milliseconds{5}}; // smaller differences are noise
};

// The lease on one peer. Also used by a worker to watch its director.
class liveness {
public:
  liveness(duration lease, duration path_grace, time_point now);
  void beat(time_point now);
  void path_error(time_point now);
  // The observer did not look; of that time `missed` does not count. True when the lease was extended.
  bool observer_stalled(time_point now, duration missed);
  [[nodiscard]] bool expired(time_point now) const { return now >= deadline_; }
  [[nodiscard]] bool suspected() const { return suspected_; }
  [[nodiscard]] time_point last_beat() const { return last_beat_; }

private:
  duration lease_;
  duration path_grace_;
  time_point last_beat_;
  time_point deadline_;
  bool suspected_{false};
  bool heard_out_{false}; // time was left once, in this silence, to hear it after a stall
};

class failure_detector {
public:
  explicit failure_detector(const timeouts& limits, const detector_settings& settings = {});

  // Starts a lease. An incarnation is watched once; watching it again gives it its new rank.
  void watch(incarnation_id who, rank_id rank, time_point now);
  void forget(incarnation_id who); // it left, or its exit was seen; unknown ones are ignored
  // A new generation begins: the step may go back and hang clocks start anew. Leases run on.
  void generation_started(time_point now);
  void generation_ended() { between_ = true; } // until the next one starts
  // False for one that is unknown or has expired: its heartbeat is stale and counted.
  bool beat(incarnation_id who, const progress& reported, time_point now);
  void path_error(incarnation_id who, time_point now); // unknown ones are ignored
  // Call every tick_interval. Verdicts come in the order in which peers were watched.
  [[nodiscard]] std::vector<verdict> tick(time_point now);

  [[nodiscard]] bool suspected(incarnation_id who) const; // a path error that no heartbeat has cleared
  // It beats: a heartbeat within `path_grace`, and no path error since.
  [[nodiscard]] bool beats(incarnation_id who, time_point now) const;
  [[nodiscard]] duration hang_bound() const; // as learned so far
  [[nodiscard]] std::uint64_t stalls() const { return stalls_; }
  // Time in which the observer did not look, in all: deadlines that it sets for others run without it.
  [[nodiscard]] duration missed() const { return missed_; }
  [[nodiscard]] std::uint64_t leases_extended() const { return leases_extended_; }
  [[nodiscard]] std::uint64_t stale_beats() const { return stale_beats_; }
  [[nodiscard]] std::size_t watched() const { return peers_.size(); }

private:
  struct peer {
    incarnation_id who{};
    rank_id rank{};
    liveness lease;
    progress last{};
    time_point advanced_at; // observer's time of the last change of step
    bool stepped{false};    // has applied a step in this generation
    bool dead{false};
    bool hang_told{false};
    bool straggler_told{false};
    bool straggler_new{false};
    std::uint32_t slow_streak{0};
    time_point slow_since{};
  };

  [[nodiscard]] peer* find(incarnation_id who);
  void learn(peer& p, const progress& reported, time_point now);
  void judge_pace(peer& p, time_point now);
  [[nodiscard]] duration median_busy_of_others(const peer& p);
  void check_stall(time_point now);
  void check_leases(time_point now, std::vector<verdict>& out);
  void check_hangs(time_point now, std::vector<verdict>& out);
  [[nodiscard]] bool stuck(const peer& p, time_point now) const;
  [[nodiscard]] verdict hang_verdict(const peer& p, verdict::kind what, time_point now) const;
  [[nodiscard]] const peer* furthest_waiting() const;

  timeouts limits_;
  detector_settings settings_;
  time_point stepped_at_{}; // somebody was last seen to step
  std::vector<peer> peers_;
  std::vector<duration> step_times_; // ring of the newest samples
  std::size_t step_times_next_{0};
  duration typical_step_{};
  duration longest_step_{};
  std::vector<duration> scratch_;
  std::optional<time_point> last_tick_; // or the first peer's watch
  bool between_{false};                 // two generations
  std::uint64_t stalls_{0};
  duration missed_{0};
  std::uint64_t leases_extended_{0};
  std::uint64_t stale_beats_{0};
};

// A worker's watch over its director: silence for longer than orphan_grace means orphaned.
class orphan_watch {
public:
  orphan_watch(const timeouts& limits, time_point now);
  void beat(time_point now) { lease_.beat(now); }
  // Call every tick_interval. A worker that was stopped itself does not blame its director (FD-4).
  [[nodiscard]] bool orphaned(time_point now);

private:
  duration stall_gap_;
  duration heartbeat_interval_;
  liveness lease_;
  time_point last_look_;
};

} // namespace troupe
