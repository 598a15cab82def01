// Entropy seam: ids, nonces and jitter. Never used for anything that results depend on (see counter_rng).
#pragma once

#include <cstdint>

namespace troupe {

class entropy {
public:
  virtual ~entropy() = default;
  [[nodiscard]] virtual std::uint64_t next() = 0;
};

template <class Id>
[[nodiscard]] Id random_id_from(entropy& source) {
  const auto high = source.next();
  return Id{high, source.next() | 1U};
}

} // namespace troupe
