// Job runner: runs programs one after the other, as a person would, and reads what they say.
//
// Owns:     a temporary folder (removed at the end), the event loop that waits, the processes started.
// Runs on:  its caller's thread; every call waits for the processes, no call waits longer than its limit.
// Fails:    errc::process_died: a program ended otherwise than asked, with the last line that it said;
//           errc::timed_out; errc::aborted: SIGINT or SIGTERM came (`interrupted`).
// Invariants:
//   JB-1    no process that was started, nor what it left behind, outlives the runner.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/process.hpp"

namespace troupe::bench {

// Where the programs of this build lie: beside the one that runs.
[[nodiscard]] std::filesystem::path beside_this_program(const std::string& name);

struct run_account {
  nlohmann::json summary;
  std::vector<nlohmann::json> events; // in order
};

class job_runner {
public:
  [[nodiscard]] static expected<std::unique_ptr<job_runner>> make();
  ~job_runner();

  // The program's standard output; exit code 0 is demanded.
  [[nodiscard]] expected<std::string> output_of(const std::string& program,
                                                const std::vector<std::string>& arguments, duration limit);
  // Runs a training program with `--quiet --summary`; the summary. Exit code 0 is demanded.
  [[nodiscard]] expected<nlohmann::json> summary_of(const std::string& program,
                                                    std::vector<std::string> arguments, duration limit);

  // The same with `--events`.
  [[nodiscard]] expected<run_account> account_of(const std::string& program,
                                                 std::vector<std::string> arguments, duration limit);

  using event_handler = std::function<void(const nlohmann::json& event)>;
  // A training program with `--quiet --events`; each event is handed over as it arrives, inside `wait`.
  [[nodiscard]] expected<std::int64_t>
  start_with_events(const std::string& program, std::vector<std::string> arguments, event_handler each);
  [[nodiscard]] bool runs(std::int64_t pid) const;
  void signal(std::int64_t pid, int number);
  // Lets things happen until `done` holds, or the limit or an interruption ends it: false.
  [[nodiscard]] bool wait(const std::function<bool()>& done, duration limit);
  // Kills what ended programs have left behind, until nothing is left.
  void sweep();

  [[nodiscard]] const clock_seam& clock() const;
  [[nodiscard]] std::filesystem::path folder() const;
  [[nodiscard]] int interrupted() const;       // the signal's number; 0: not
  [[nodiscard]] std::string last_line() const; // that a program said

private:
  struct state;
  explicit job_runner(std::unique_ptr<state> made);
  std::unique_ptr<state> state_;
};

} // namespace troupe::bench
