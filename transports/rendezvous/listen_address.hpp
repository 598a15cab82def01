// HOST:PORT as options write it: "127.0.0.1:4100", "[::1]:0", "localhost:4100".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"

namespace troupe {

struct host_port {
  std::string host; // without brackets
  std::uint16_t port{0};
};

// errc::bad_argument: one line that opens with the option, names the text, and says what is accepted.
[[nodiscard]] expected<host_port> parse_host_port(std::string_view option, std::string_view text);

} // namespace troupe
