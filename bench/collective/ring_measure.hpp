// Measures all-reduce over the ring, and what the transport under it carries: UCX (tcp) on the loopback
// device, or between network namespaces.
#pragma once

#include <optional>

#include "bench/collective/rank_measure.hpp"
#include "bench/support/network_place.hpp"
#include "transports/ring/ring_collective.hpp"

namespace troupe::bench {

// `bytes` is a multiple of 4; `places` by rank, empty: this host. errc: as the collective seam; internal when
// a rank failed.
[[nodiscard]] expected<timed_row> measure_ring(std::uint32_t ranks, std::size_t bytes,
                                               std::uint32_t iterations,
                                               const std::vector<network_place>& places = {},
                                               ring_settings settings = {});
// One bulk transfer of `bytes` from one process to another, or one each way at the same time.
[[nodiscard]] expected<timed_row> measure_bulk(bool both_ways, std::size_t bytes, std::uint32_t iterations,
                                               const std::vector<network_place>& places = {});

} // namespace troupe::bench
