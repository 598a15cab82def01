// Process watch: what the processes of a run hold, read from /proc.
//
// A run's processes carry a mark in their environment, which their children inherit.
// Owns:     the newest samples of each process seen.
// Runs on:  one thread; reads /proc, changes nothing but by `signal`.
// Invariants:
//   PW-1    only a process that carries the mark is signalled, also when ids are reused meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::chaos {

inline constexpr const char* mark_variable = "TROUPE_CHAOS_RUN";

struct process_usage {
  std::uint64_t descriptors{0};
  std::uint64_t resident_bytes{0};
};
void keep_most(process_usage& most, const process_usage& usage); // of each

class process_watch {
public:
  explicit process_watch(std::string mark)
      : mark_{std::move(mark)} {}
  [[nodiscard]] const std::string& mark() const { return mark_; }

  [[nodiscard]] std::vector<std::int64_t> living() const;
  // A line for each living process: id, state, name.
  [[nodiscard]] std::vector<std::string> describe_living() const;
  bool signal(std::int64_t pid, int number) const; // false: not there, or not ours
  void signal_all(int number) const;

  void sample();
  // What a process holds at the end: the median of its last samples, so that what a recovery or the shutdown
  // holds or frees for a moment is left out. Only processes that lived long enough.
  [[nodiscard]] std::map<std::int64_t, process_usage> at_end() const;
  [[nodiscard]] std::map<std::int64_t, process_usage> at_most() const;
  [[nodiscard]] bool seen(std::int64_t pid) const { return samples_.contains(pid); }

private:
  struct samples {
    std::deque<process_usage> newest;
    process_usage most;
  };
  std::string mark_;
  std::map<std::int64_t, samples> samples_;
};

[[nodiscard]] std::uint64_t own_descriptors();

} // namespace troupe::chaos
