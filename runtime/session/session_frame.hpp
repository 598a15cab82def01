// Session frames: the bytes that two sessions exchange, inside the payloads of the transport below.
//
// Little-endian numbers. What arrives is checked here, field by field, before anything is used.
//
//   batch   header (count > 0), then `count` messages: length (u32), zero (u32), payload, padding to 8 bytes
//   ack     header alone
//   resume  header, then resume_body, `done_count` numbers of transfers, the sender's address
//   sent    header, then transfer_body: the digest of what was sent. Said as soon as it is known, behind
//           the transfer's announcement
//   found   header, then transfer_body: the digest of what arrived, in answer to `sent`
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/limits.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

inline constexpr std::uint32_t session_magic = 0x31534553; // "SES1"
inline constexpr std::size_t session_lanes = 2;

enum class session_kind : std::uint8_t { batch = 1, ack, resume, sent, found };
enum class session_lane_id : std::uint8_t { ordinary, urgent };

struct session_header {
  std::uint32_t magic;
  session_kind kind;
  session_lane_id lane;               // of a batch
  std::uint16_t count;                // messages of a batch
  std::uint64_t sequence;             // of a batch: 1, 2, ... per lane and direction
  std::uint64_t acked[session_lanes]; // the newest batch that the sender has received, per lane
};
static_assert(sizeof(session_header) == 32);

struct resume_body {
  std::uint32_t done_count;    // transfers to the sender of this that are complete
  std::uint32_t address_bytes; // where the sender can be reached
};

struct transfer_body {
  std::uint64_t transfer;
  std::uint32_t attempt; // of the sender; an answer to another one says nothing
  std::uint32_t zero;
  std::array<char, 32> digest; // as runtime/base/digest.hpp writes it
  [[nodiscard]] std::string text() const { return {digest.begin(), digest.end()}; }
};
static_assert(sizeof(transfer_body) == 48);

struct message_header {
  std::uint32_t bytes;
  std::uint32_t zero;
};
static_assert(sizeof(message_header) == 8);

// What a message occupies in a batch.
[[nodiscard]] constexpr std::size_t batched_bytes(std::size_t payload) {
  return sizeof(message_header) + (payload + 7) / 8 * 8;
}
inline constexpr std::size_t session_frame_bytes_max =
    sizeof(session_header) + batched_bytes(limits::envelope_bytes_max);
static_assert(session_frame_bytes_max <= limits::payload_bytes_max, "a message fits the transport below");

// Nothing, where it is not one of ours or breaks a rule.
[[nodiscard]] std::optional<session_header> read_session_header(std::span<const std::byte> frame);

// The messages of a checked batch, one after the other: the first is taken off `left`. Nothing at the end, or
// where the form is wrong (`left` is not empty then).
[[nodiscard]] std::optional<std::span<const std::byte>> take_message(std::span<const std::byte>& left);

struct resume_view {
  std::span<const std::byte> done; // numbers of 8 bytes
  std::span<const std::byte> address;
};
[[nodiscard]] std::optional<resume_view> read_resume(std::span<const std::byte> frame);
[[nodiscard]] std::optional<transfer_body> read_transfer(std::span<const std::byte> frame);

} // namespace troupe
