#include "runtime/train/bucket_plan.hpp"

#include <algorithm>

#include "runtime/train/limits.hpp"

namespace troupe {

bucket_plan bucket_plan::make(const arena_layout& layout, std::size_t bucket_bytes) {
  bucket_plan made;
  made.of.resize(layout.parameters.size());
  if (bucket_bytes == 0) return made;
  const auto least = (layout.part_elements + limits::buckets_max - 1) / limits::buckets_max;
  const auto enough = std::max(bucket_bytes / sizeof(float), least);
  auto end = layout.part_elements;
  std::size_t parameters = 0;
  for (auto i = layout.parameters.size(); i-- > 0;) {
    made.of[i] = made.early.size();
    ++parameters;
    const auto begin = layout.parameters[i].offset;
    if (i == 0 || end - begin < enough) continue;
    made.early.push_back({{begin, end}, parameters});
    end = begin;
    parameters = 0;
  }
  return made;
}

} // namespace troupe
