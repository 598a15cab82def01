#include "runtime/base/probe.hpp"

#include <algorithm>

namespace troupe {

std::vector<probe_count> probes() {
  std::vector<probe_count> all;
  for (const auto* one = probe_record::last_.load(); one != nullptr; one = one->next_)
    all.push_back({one->name_, one->hits_.load(std::memory_order_relaxed)});
  std::ranges::sort(all, {}, &probe_count::name);
  return all;
}

} // namespace troupe
