// Network place: where one rank of a measurement is, when ranks are in network namespaces of their own.
#pragma once

#include <string>

#include "runtime/base/error.hpp"

namespace troupe::bench {

struct network_place {
  std::string name_space; // as `ip netns` names it
  std::string device;
  std::string address; // IPv4, of that device
};

// "NAMESPACE,DEVICE,ADDRESS". errc::bad_argument.
[[nodiscard]] expected<network_place> parse_network_place(const std::string& text);
// This process, which has one thread. errc::internal: not permitted, or not there.
[[nodiscard]] expected<void> enter(const network_place& place);

} // namespace troupe::bench
