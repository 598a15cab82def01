// Lanes: which ways UCX may use between two processes, and which it chose.
//
// Two choices are offered. `tcp` passes the whole fault matrix. `shm` adds the shared memory of a host; UCX
// leaves it out of supervised paths unless its lanes are told to handle errors, and the matrix has not
// passed with it (docs/rooms/ucx.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transports/ucx/ucx_transport.hpp"

namespace troupe {

enum class lane_choice : unsigned char { tcp, shm };

[[nodiscard]] ucx_settings settings_for(lane_choice choice);
[[nodiscard]] ucx_settings settings_for(std::string_view choice); // "shm"; anything else is tcp
[[nodiscard]] std::string ucx_version();                          // of the library that is loaded: "1.13.1"
// One line for people who choose `shm`.
[[nodiscard]] std::string shm_warning();
// One line where UCX's events do not come apart in this program (event_order.hpp); empty where they do.
[[nodiscard]] std::string events_warning();

// From what UCX prints of an endpoint (`ucx_transport::lanes`): "tcp/lo", "sysv/memory", in the order of the
// lanes, each once. Empty where the text names none.
[[nodiscard]] std::vector<std::string> parse_lanes(std::string_view printed);
// The same in one word: "sysv/memory+tcp/lo".
[[nodiscard]] std::string short_lanes(std::string_view printed);

// What UCX could use on this machine, whatever is chosen: "tcp/lo", "sysv/memory". Empty: it cannot start.
[[nodiscard]] std::vector<std::string> ucx_resources();
// From what UCX prints of a context.
[[nodiscard]] std::vector<std::string> parse_resources(std::string_view printed);

} // namespace troupe
