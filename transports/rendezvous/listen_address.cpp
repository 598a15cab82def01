#include "transports/rendezvous/listen_address.hpp"

#include <charconv>

#include "runtime/base/limits.hpp"

namespace troupe {

expected<host_port> parse_host_port(std::string_view option, std::string_view text) {
  const error bad{errc::bad_argument, std::string{option} + " '" + std::string{text} +
                                          "': accepted is HOST:PORT, as 127.0.0.1:4100 or [::1]:4100"};
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.size() > limits::name_bytes_max) return bad;
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || (!bracketed && host.find_first_of(":[]") != std::string_view::npos)) return bad;
  for (const char c : host)
    if (c <= ' ' || c == 0x7f) return bad;
  unsigned port = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (fault != std::errc{} || end != digits.data() + digits.size() || port > 65535) return bad;
  return host_port{std::string{host}, static_cast<std::uint16_t>(port)};
}

} // namespace troupe
