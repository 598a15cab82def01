// Fault plan: the faults of a run, which of them are due where, and which have struck already.
//
// In:       --fault SPECs, a plan file's text; where a process stands (role, rank, step, time).
// Out:      positions in the plan of the faults that this process must inject into itself now.
// `due` is pure: what has struck (`fired_faults`) is kept by the director, which reads it off the black box
// of the struck process and hands it to every replacement, so a restarted worker is not struck again.
// Invariants:
//   FP-1    a fault strikes `times` times in all; with target `all`, that often on each rank.
//   FP-2    `any` names one rank, the same in every process: a function of seed, fault and strikes so far.
//   FP-3    a fault of step N is due when N is entered, also for one who sees only some steps (the director).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/policy/fault.hpp"

namespace troupe {

using fault_plan = std::vector<fault>;
inline constexpr std::size_t plan_faults_max = 256;

// Plan file: TOML, one [[fault]] table a fault: kind, target, at, and the keys of SPEC; or spec = "SPEC".
// `file` is the name for errors, which read "FILE:LINE: what is wrong; accepted: ...".
[[nodiscard]] expected<fault_plan> parse_fault_plan(std::string_view text, std::string_view file);

enum class fault_role : std::uint8_t {
  director,     // director-kill
  worker,       // kill, segv, exit, throw, stop, ...
  prefetcher,   // throw:prefetcher
  checkpointer, // bit-flip: where checkpoints are written
};
[[nodiscard]] fault_role role_of(const fault& f);

struct fault_point {
  fault_role role{fault_role::worker};
  rank_id rank{};
  std::uint32_t world{1};
  step_id previous{}; // the last step asked about; a worker that asks at every step gives step - 1
  step_id step{};     // about to be computed (director: the newest step started that it knows of)
  duration elapsed{}; // since the job started
  std::uint64_t seed{0};
};

class fired_faults {
public:
  void mark(std::size_t fault, rank_id rank);
  void merge(const fired_faults& other); // of each fault and rank the higher count
  [[nodiscard]] std::uint32_t total(std::size_t fault) const;
  [[nodiscard]] std::uint32_t on(std::size_t fault, rank_id rank) const;
  [[nodiscard]] bool operator==(const fired_faults&) const = default;
  // Compact text for a replacement's settings and for the journal.
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static expected<fired_faults> decode(std::string_view text);

private:
  struct count {
    std::size_t fault;
    rank_id rank{};
    std::uint32_t times;
    bool operator==(const count&) const = default;
  };
  [[nodiscard]] count& at(std::size_t fault, rank_id rank);
  std::vector<count> counts_; // ordered by fault, then rank
};

// Positions in the plan, in order. Does not allocate when nothing is due.
[[nodiscard]] std::vector<std::size_t> due(const fault_plan& plan, const fault_point& here,
                                           const fired_faults& fired);

} // namespace troupe
