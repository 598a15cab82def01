// Whether UCX hands an endpoint "readable" and "writable" apart in this program (event_order.cpp says why it
// must).
#pragma once

namespace troupe {

[[nodiscard]] bool events_apart();

} // namespace troupe
