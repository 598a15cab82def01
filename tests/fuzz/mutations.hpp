// Mutations: changed inputs, as a pure function of the corpus, a target's name and a number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

// One of `corpus` (not empty), changed in 1 to 6 places.
[[nodiscard]] bytes mutated(std::span<const bytes> corpus, std::string_view name, std::uint64_t number);

} // namespace troupe::fuzz
