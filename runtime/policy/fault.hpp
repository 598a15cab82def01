// Faults to inject: one `fault` says what, to whom, when. The same names serve simulation and real processes.
//
// Text form (SPEC):  KIND[:TARGET]@WHEN[,KEY=VALUE]...
//   KIND    a name of `fault_names`
//   TARGET  worker=N|any|all, prefetcher=N|any|all, checkpoint=newest|STEP; `worker` alone means worker=any
//   WHEN    step=N (when step N, counted from 1, is about to be computed), every=DURATION, after=DURATION
//   KEY     for=DURATION, factor=NUMBER, code=N, way=in|out|both,
//           times=N|always (default 1; with every=: always)
// Fails:    errc::bad_argument; the text says what is wrong and what is accepted, in one line.
// Invariants:
//   FT-1    to_text of a fault parses back to the same fault.
//   FT-2    a key that a kind has no use for is refused, never ignored.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

namespace troupe {

enum class fault_kind : std::uint8_t {
  kill,
  segv,
  exit,
  throw_error,
  stop,
  slow,
  hang_in_collective,
  skip_collective,
  cut,
  clog,
  path_error,
  disk_full,
  disk_slow,
  torn_write,
  bit_flip,
  nan,
  oom,
  clock_step,
  director_kill,
};

struct fault_target {
  enum class place : std::uint8_t { none, worker, prefetcher, checkpoint };
  enum class choice : std::uint8_t { one, any, all, newest };
  place where{place::none};
  choice which{choice::any};
  std::uint64_t number{0}; // rank, or a checkpoint's step, for `one`
  bool operator==(const fault_target&) const = default;
};

struct fault_moment {
  enum class kind : std::uint8_t { step, every, after };
  kind what{kind::step};
  step_id step{};
  duration time{};
  bool operator==(const fault_moment&) const = default;
};

enum class fault_way : std::uint8_t { both, in, out }; // seen from who is struck

struct fault {
  static constexpr std::uint32_t always = std::numeric_limits<std::uint32_t>::max();
  static constexpr int code_default = 1;

  fault_kind kind{fault_kind::kill};
  fault_target target{};
  fault_moment when{};
  std::uint32_t times{1};
  std::optional<duration> lasting{}; // for=; none: for ever
  std::optional<double> factor{};    // at least 1
  std::optional<int> code{};         // 0 .. 255
  std::optional<fault_way> way{};    // none: both
  bool operator==(const fault&) const = default;
};

[[nodiscard]] std::string_view to_string(fault_kind kind);
[[nodiscard]] std::span<const std::string_view> fault_names();
[[nodiscard]] expected<fault> parse_fault(std::string_view spec);
[[nodiscard]] std::string to_text(const fault& f);
// Ends or stops the process that it strikes, at once.
[[nodiscard]] bool ends_process(fault_kind kind);
// Work goes on under it: nothing is lost that had to be healed.
[[nodiscard]] bool is_borne(fault_kind kind);
// Struck is what the process sees of the outside: its seams have to be able to fail.
[[nodiscard]] bool strikes_seam(fault_kind kind);

} // namespace troupe
