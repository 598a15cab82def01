// Frame cutter: one frame out of a stream that comes in pieces of any size.
//
// Flow:     socket or TLS -> `room` -> `filled` -> exchange_frame
// Owns:     the frame's bytes: a length, then at most `bytes_max`.
// Fails:    errc::refused: empty, too long or malformed. It is of no use after that, nor after the frame.
// Invariants:
//   RV-5    no byte behind the frame is taken, and memory is taken for a length only once it was checked.
#pragma once

#include <optional>

#include "transports/rendezvous/exchange.hpp"

namespace troupe {

class frame_cutter {
public:
  explicit frame_cutter(std::size_t bytes_max)
      : bytes_max_{bytes_max} {}
  // Where the next bytes go. Never empty until there is a frame or an error.
  [[nodiscard]] std::span<std::byte> room() { return std::span{bytes_}.subspan(have_); }
  // The first `bytes` of the room were filled. Gives the frame once it is whole.
  [[nodiscard]] expected<std::optional<exchange_frame>> filled(std::size_t bytes);

private:
  std::size_t bytes_max_;
  wire_bytes bytes_ = wire_bytes(frame_length_bytes);
  std::size_t have_{0};
};

} // namespace troupe
