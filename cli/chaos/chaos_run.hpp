// Chaos run: one run of the program under one plan, watched until nothing of it is left.
//
// Flow:     plan -> [run_stage: starts, strikes, watches, ends] -> run_result
// Owns:     the event loop that waits, the processes of the run that is under way.
// Runs on:  its caller's thread; `run` returns when all of the run's processes are gone.
// A director that was killed as planned is followed by the same command again.
// Invariants:
//   CR-1    no process of a run, nor what it left behind, outlives `run`.
//   CR-2    a run ends: what still runs at its time limit is killed, and that is told.
//   CR-3    after SIGINT or SIGTERM the job is told to end (SIGTERM), and killed when the grace is over or
//           the signal comes again; no director is started then.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/chaos/chaos_plan.hpp"
#include "cli/chaos/process_watch.hpp"
#include "runtime/seams/process.hpp"

namespace troupe::chaos {

struct run_request {
  std::string program; // a path
  std::vector<std::string> arguments;
  std::vector<strike> plan;
  std::filesystem::path folder; // exists, empty
  duration time_limit{};
};

// One director, from start to end. Times are since the run's start.
struct attempt {
  duration started{};
  std::optional<duration> told{}; // its first event: where the clock of its events begins
  duration ended{};
  process_exit end;
  std::vector<nlohmann::json> events;
};

struct role_usage { // the most that a process of the role held
  process_usage director;
  process_usage worker;
};

struct run_result {
  std::vector<strike> plan;
  std::filesystem::path folder;
  std::vector<attempt> attempts;
  std::vector<std::optional<duration>> struck; // from outside, by position in the plan
  nlohmann::json summary;                      // null: none
  role_usage at_end;
  role_usage at_most;
  std::vector<std::string> leaks;
  std::vector<std::string> hung; // processes at the time limit; empty: it ended by itself
  std::string last_line;         // that the program said
  duration wall{};
};

struct run_machinery; // loop, clock, processes, signals

class run_stage {
public:
  run_stage();
  ~run_stage();
  run_stage(const run_stage&) = delete;
  run_stage& operator=(const run_stage&) = delete;

  // errc::not_found, storage_failed: the program cannot be started.
  [[nodiscard]] expected<run_result> run(const run_request& request,
                                         const std::function<void(duration elapsed)>& progress);
  [[nodiscard]] int interrupted() const; // the signal's number; 0: not

private:
  std::unique_ptr<run_machinery> machinery_;
};

} // namespace troupe::chaos
