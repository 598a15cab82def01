// Host entropy: random numbers from the system. Any thread.
#pragma once

#include <string>

#include "runtime/seams/entropy.hpp"

namespace troupe {

class host_entropy final : public entropy {
public:
  [[nodiscard]] std::uint64_t next() override;
};

// Wall-clock time, "2026-11-29T17:15:02Z": for reports and file headers only, never for a decision.
[[nodiscard]] std::string wall_clock_text();

} // namespace troupe
