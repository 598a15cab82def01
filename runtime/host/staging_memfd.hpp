// Staging in sealed anonymous memory of the kernel (memfd), shared by the processes of one host.
//
// The owner writes once, unmaps, seals; others map the same pages read-only through the locator
// "/proc/<owner's pid>/fd/<n>", or through "/proc/self/fd/<n>" where they inherited the descriptor. Nothing
// has a name in a file system, so nothing is left behind, whoever is killed when. A mapping outlives its
// owner; the locator does not. Linux only.
#pragma once

#include "runtime/data/staging.hpp"

namespace troupe {

class memfd_staging final : public staging {
public:
  [[nodiscard]] expected<std::unique_ptr<staging_draft>> begin(const std::string& name,
                                                               std::size_t bytes) override;
  [[nodiscard]] expected<std::shared_ptr<const staged_memory>> open(const std::string& locator) override;
};

// The locator under which a child that inherited descriptor `n` opens it.
[[nodiscard]] inline std::string inherited_locator(int n) {
  return "/proc/self/fd/" + std::to_string(n);
}

} // namespace troupe
