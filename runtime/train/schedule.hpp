// Learning-rate schedules: pure functions of the step, so that nothing about them needs to be saved.
//
// The rate of step k is what the update from state k to state k + 1 uses. It never depends on the number of
// workers.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "runtime/base/error.hpp"

namespace troupe {

struct constant {
  float rate{0.01F};
};

// Rises linearly to `peak` over `warmup_steps`, then falls along half a cosine to `floor` at `total_steps`.
// Source: Loshchilov, Hutter, "SGDR", ICLR 2017 (one cycle).
struct cosine {
  float peak{0.1F};
  std::uint64_t warmup_steps{0};
  float floor{0.0F};
  std::uint64_t total_steps{0}; // 0: the job's length, see `resolved`
};

// `start`, multiplied by `factor` every `every_steps`.
struct step_decay {
  float start{0.1F};
  float factor{0.1F};
  std::uint64_t every_steps{1000};
};

using learning_rate = std::variant<constant, cosine, step_decay>;

// errc::bad_argument names the setting and what is accepted.
[[nodiscard]] expected<void> validate(const learning_rate& schedule);
// Fills in what the job's length decides.
[[nodiscard]] learning_rate resolved(learning_rate schedule, std::uint64_t steps_total);
// Of a valid, resolved schedule.
[[nodiscard]] float rate_at(const learning_rate& schedule, std::uint64_t step);
// "cosine(peak=0.1,...)": exact, for digests and manifests.
[[nodiscard]] std::string text_of(const learning_rate& schedule);

} // namespace troupe
