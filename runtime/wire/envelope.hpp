// Envelope: the one form in which anything crosses a process.
//
// Flow:     actor message -> codec (codec.hpp) -> [envelope] -> transport, and back.
// Owns:     nothing; encodes into the caller's buffer, decodes to views into the caller's bytes.
// Fails:    errc::too_large, errc::corrupt; never throws, never allocates on the common path.
// Invariants:
//   EN-1    decode(encode(e)) is e, for every valid envelope.
//   EN-2    malformed bytes give errc::corrupt: nothing is read outside the span, nothing is thrown.
//   EN-3    an envelope is one Cap'n Proto segment of at most limits::envelope_bytes_max.
//
// Who fills what, by kind ("channel": a number that the process asking gave its handle to one actor life):
//   message      target = channel, source = sending actor, type, body
//   request      as message, correlation = number of the request in the sending process
//   response     correlation, type, body
//   failure      correlation, status, text: the request ends with an error
//   undelivered  target = actor that sent, correlation = channel, type, status, text: a message came back
//   open         target = channel, name = published name, or source = actor id when the name is empty
//   close        target = channel: the handle is gone
//   down         target = channel, status, text: the actor behind it ended
//   link, unlink target = channel, source = actor: the source's end reaches the target as an exit
//   exit         target = channel, source = actor, status, text
//   control      type, body: process to process, no actor (heartbeats)
//   credit       target = channel, correlation = messages that may have been sent on it since it was opened
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"

namespace troupe {

enum class envelope_kind : std::uint16_t {
  message = 1,
  request,
  response,
  failure,
  undelivered,
  open,
  close,
  down,
  link,
  unlink,
  exit,
  control,
  credit,
};

struct envelope {
  job_id job;
  incarnation_id sender;
  generation_id generation; // 0: not bound to one
  envelope_kind kind{envelope_kind::message};
  std::uint16_t status{0}; // an exit_status
  std::uint64_t target{0};
  std::uint64_t source{0};
  std::uint64_t correlation{0};
  std::uint64_t type{0};           // wire_type_of the codec's name; 0: no body
  std::string_view name;           // at most limits::name_bytes_max
  std::string_view text;           // at most limits::error_text_bytes_max
  std::span<const std::byte> body; // 8-byte aligned after decoding
};

// How an actor ended, or why something failed, as one number on the wire.
namespace exit_status {
inline constexpr std::uint16_t normal = 0;
inline constexpr std::uint16_t killed = 1;   // cannot be trapped
inline constexpr std::uint16_t shutdown = 2; // asked for
inline constexpr std::uint16_t first_errc = 16;
[[nodiscard]] constexpr std::uint16_t of(errc code) {
  return static_cast<std::uint16_t>(first_errc + static_cast<unsigned>(code));
}
[[nodiscard]] constexpr bool valid(std::uint16_t status) {
  return status <= shutdown || (status >= first_errc && status <= of(errc::internal));
}
// errc::actor_stopped for the orderly ones.
[[nodiscard]] constexpr errc to_errc(std::uint16_t status) {
  return status < first_errc ? errc::actor_stopped : static_cast<errc>(status - first_errc);
}
} // namespace exit_status

// An upper bound of what `encode` needs.
[[nodiscard]] std::size_t encoded_bytes(const envelope& what);

// Writes to the front of `into` (8-byte aligned) and gives the bytes used. errc::too_large: `into`, or
// limits::envelope_bytes_max, is too small; errc::bad_argument: name or text too long.
[[nodiscard]] expected<std::size_t> encode(const envelope& what, std::span<std::byte> into);

// Views into `bytes` (8-byte aligned). errc::corrupt says what is wrong.
[[nodiscard]] expected<envelope> decode(std::span<const std::byte> bytes);

} // namespace troupe
