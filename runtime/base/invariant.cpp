#include "runtime/base/invariant.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe {

void invariant_broken(std::string_view name) noexcept {
  std::fprintf(stderr, "troupe: invariant broken (a bug of ours): %.*s\n", static_cast<int>(name.size()),
               name.data());
  std::abort();
}

} // namespace troupe
