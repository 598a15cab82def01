// Failures: what went wrong, sorted into kinds, and the one reaction that each class of kinds has.
//
// In:       a child's exit, a verdict of the failure detector, an error told by an actor.
// Out:      `failure`, a value that travels to the director, the events and the summary.
// The root cause comes first in `cause`; each hop appends itself in brackets; no text is ever parsed.
// Invariants:
//   FA-1    every kind has one name and one class; every class has one reaction.
//   FA-2    a process that the director ended itself is reported with the reason, not with SIGKILL.
// Why:      docs/design/0010-failure-detection.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"
#include "runtime/seams/process.hpp"

namespace troupe {

enum class failure_kind : std::uint8_t {
  kill,            // SIGKILL from outside
  segv,            // SIGSEGV, SIGBUS, SIGILL, SIGFPE
  abort,           // SIGABRT: an assertion or a library gave up
  signal,          // any other signal
  exit,            // ended by itself before its work was done
  oom,             // an allocation failed; or a guess: SIGKILL while the machine was out of memory
  thrown,          // an exception in user code or in an actor
  stop,            // silent, but the process is there (SIGSTOP, a frozen container, a swapped-out host)
  hang,            // heartbeats, but no step
  collective_hang, // the same for every rank inside one collective
  straggler,       // slower than its peers
  path_lost,       // the connection failed, nothing is known of the process
  device,          // the compute device reported an error
  bad_data,        // a record that cannot be used
  nan,             // a gradient that is not finite
  storage,         // a checkpoint could not be written or read
};
inline constexpr std::size_t failure_kinds = 16;

enum class failure_class : std::uint8_t {
  actor_error,
  process_death,
  silent_process,
  device_error,
  lost_path,
  hang,
  straggler,
  bad_data,
  storage,
};

enum class failure_reaction : std::uint8_t {
  restart_actor,    // its local supervisor restarts it; its budget spent, the process is replaced
  replace_process,  // the generation ends, a replacement is started, survivors stay
  kill_and_replace, // the same, after SIGKILL: it must not come back
  confirm,          // nothing yet: the lease is shortened and decides
  report,           // an event and a number; training goes on
  stop_job,         // it would happen again: the job ends with a report
  retry_later,      // training goes on; the next checkpoint tries again, the next step reports
};

[[nodiscard]] std::string_view to_string(failure_kind kind); // as in the summary and the events
[[nodiscard]] std::string_view to_string(failure_class what);
[[nodiscard]] std::string_view to_string(failure_reaction what);
[[nodiscard]] std::optional<failure_kind> failure_kind_of(std::string_view name);
[[nodiscard]] failure_class class_of(failure_kind kind);
// Of a failure that an actor told by an error.
[[nodiscard]] failure_kind failure_kind_of(errc code);
[[nodiscard]] failure_reaction reaction_of(failure_class what);
[[nodiscard]] inline failure_reaction reaction_of(failure_kind kind) {
  return reaction_of(class_of(kind));
}

struct failure {
  failure_kind kind{failure_kind::kill};
  std::string cause{}; // one line, root cause first
  rank_id rank{};
  std::int64_t pid{0};
  incarnation_id who{};
  step_id step{}; // that was being computed
  time_point detected_at{};
  std::optional<time_point> fault_at{}; // known for injected faults only

  [[nodiscard]] std::string text() const; // "rank 1 (pid 4711), step 40: kill: killed by SIGKILL"
  [[nodiscard]] std::optional<duration> detected_in() const;
};

// What else is known when a child has ended.
struct exit_evidence {
  std::string cause{};                     // what it could still say (its black box, its last message)
  std::optional<failure_kind> told{};      // the kind that it told itself
  std::optional<failure_kind> condemned{}; // the director killed it, for this
  std::string condemned_text{};            // the verdict's text
  bool out_of_memory{false};               // an OOM counter moved, or no memory was available
};
// Kind and cause of an exit; the caller fills in who and when.
[[nodiscard]] failure failure_of_exit(const process_exit& exit, const exit_evidence& evidence);

// Same rank, step, kind, and (where the text is the program's own) the same cause.
[[nodiscard]] bool same_failure(const failure& a, const failure& b);

} // namespace troupe
