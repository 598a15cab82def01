// Supervision: which children start, restart and stop, in what order and when; a plain state machine.
//
// Flow:     events (with the time) -> [supervision] -> actions, to be carried out in the order given
// Owns:     the state of its children as far as it was told; no child, no timer, no clock.
// Source:   Erlang/OTP's supervisor (strategies, restart types, intensity),
// https://www.erlang.org/doc/man/supervisor
//           Differs: restarts back off; one cause repeated without progress escalates; a transient child that
//           ended normally stays ended when its group restarts.
// Invariants:
//   SV-1    children start in order and stop in reverse, one at a time.
//   SV-2    a child has one life at a time: its next start waits for the former life's end.
//   SV-3    with a failed child restart exactly those that the strategy names.
//   SV-4    the restarts of all children stay within the intensity; one too many escalates instead.
//   SV-5    the same failure of a child `same_cause_max` times without progress escalates.
//   SV-6    stopping a child takes at most its grace, then it is killed; a kill that shows nothing within
//           `kill_grace` is given up, and counted.
//   SV-7    exactly one of `escalated` and `supervision_stopped` ends it all, after every child's end.
//   SV-8    events of former lives and of timers no longer set change nothing.
//   SV-9    a child that ended for good is not started again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/time.hpp"
#include "runtime/policy/backoff.hpp"
#include "runtime/policy/restart_intensity.hpp"

namespace troupe {

enum class restart_strategy : unsigned char {
  one_for_one,  // the failed child alone
  one_for_all,  // all of them
  rest_for_one, // the failed child and those that started after it
};

enum class restart_type : unsigned char {
  permanent, // restarted however it ended
  transient, // restarted unless it ended normally
  temporary, // never restarted
};

struct child_spec {
  std::string id;
  restart_type restart{restart_type::permanent};
  duration shutdown_grace{std::chrono::seconds{5}};
};

struct supervision_settings {
  restart_strategy strategy{restart_strategy::one_for_one};
  intensity_policy intensity; // of all children together
  std::uint32_t same_cause_max{3};
  backoff_policy pause; // between restarts; the first within the intensity's period is immediate
  duration kill_grace{std::chrono::seconds{5}};
  std::uint64_t seed{1}; // of the back-off's jitter
};

using child_index = std::size_t;  // position in the list of specs
using child_life = std::uint64_t; // 1 for the first start of a child, 2 for the next, ...

// -- Actions --

struct start_child {
  child_index child;
  child_life life;
  std::optional<error> after; // its former life's own failure; none where it restarts with its group
};
struct stop_child { // ask it to end
  child_index child;
  child_life life;
};
struct kill_child {
  child_index child;
  child_life life;
};
struct set_timer { // ids are unique; a timer need not be cancelled
  std::uint64_t timer;
  duration delay;
};
struct escalated { // the end: root cause first
  error cause;
};
struct supervision_stopped {}; // the end, as asked

using supervision_action =
    std::variant<start_child, stop_child, kill_child, set_timer, escalated, supervision_stopped>;
using supervision_actions = std::vector<supervision_action>;

class supervision {
public:
  supervision(supervision_settings settings, std::vector<child_spec> children);

  // Events. Each returns what is to be done now.
  supervision_actions start(time_point now);
  supervision_actions child_started(child_index child, child_life life, time_point now);
  // The child's end: also of one that could not be started. `cause` is empty for a normal end.
  supervision_actions child_ended(child_index child, child_life life, std::optional<error> cause,
                                  time_point now);
  supervision_actions timer_fired(std::uint64_t timer, time_point now);
  supervision_actions stop(time_point now);
  // The children get on with their work: former failures are not held against them (SV-5).
  void progress();

  [[nodiscard]] const std::vector<child_spec>& children() const { return specs_; }
  [[nodiscard]] bool ended() const { return phase_ == phase::ended; }
  [[nodiscard]] bool running(child_index child) const { return children_[child].now == condition::running; }
  [[nodiscard]] std::uint64_t restarts() const { return budget_.admitted(); }
  [[nodiscard]] std::uint64_t given_up() const { return given_up_; } // SV-6

private:
  enum class phase : unsigned char {
    idle,
    running,  // starts what is marked
    stopping, // stops what is marked, to start it again
    waiting,  // a group, or the order of starts, backs off
    ending,
    ended,
  };
  enum class condition : unsigned char {
    down,    // not started, or to be started again
    waiting, // backs off alone
    starting,
    running,
    stopping,
    killing,
    gone, // SV-9
  };
  struct child_state {
    condition now{condition::down};
    bool marked{false}; // to be started
    child_life life{0};
    std::uint64_t timer{0};
    time_point started_at{};
    std::optional<error> own_failure;  // of the life that ended, until the next start
    std::optional<error> last_failure; // counted by SV-5
    std::uint32_t same_failures{0};
  };

  [[nodiscard]] static bool alive(const child_state& c);
  [[nodiscard]] bool restarts_after(const child_spec& spec, bool normal) const;
  void advance(supervision_actions& out);
  void start_next(supervision_actions& out);
  bool stop_last(supervision_actions& out, bool marked_only); // false: none is alive
  void regroup(supervision_actions& out);
  void end_if_all_down(supervision_actions& out);
  void on_failure(child_index index, const error& cause, bool starting, time_point now,
                  supervision_actions& out);
  [[nodiscard]] std::optional<error> verdict(child_index index, const error& cause, time_point now);
  void restart_alone(child_index index, duration delay, bool starting, supervision_actions& out);
  void restart_group(child_index index, duration delay, supervision_actions& out);
  void escalate(error cause, supervision_actions& out);
  [[nodiscard]] duration wait_before_restart(time_point now);
  std::uint64_t add_timer(duration delay, supervision_actions& out);

  supervision_settings settings_;
  std::vector<child_spec> specs_;
  std::vector<child_state> children_;
  phase phase_{phase::idle};
  std::optional<error> end_cause_;
  restart_intensity budget_;
  backoff pause_;
  std::optional<time_point> last_restart_;
  duration group_delay_{0};
  std::uint64_t group_timer_{0};
  std::uint64_t last_timer_{0};
  std::uint64_t given_up_{0};
  counter_rng rng_;
  std::uint64_t draws_{0};
};

} // namespace troupe
