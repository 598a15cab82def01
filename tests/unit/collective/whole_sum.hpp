// What every rank of a table has once a sum is complete.
#pragma once

#include <cstdint>
#include <span>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/reference.hpp"

namespace troupe::test {

// `table[rank].answer` is sum number `step`, with these bits.
template <class Table>
void all_have(Table& table, const collective_shape& shape, std::uint64_t step, std::span<const float> sum) {
  for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
    CAPTURE(step, rank);
    REQUIRE(table[rank].answer.has_value());
    REQUIRE(table[rank].answer->has_value());
    CHECK((*table[rank].answer)->number == step); // CO-4
    REQUIRE(reference::same_bits((*table[rank].answer)->sum, sum));
  }
}

} // namespace troupe::test
