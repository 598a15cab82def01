// UCX frames: the bytes that two transports exchange, apart from UCX itself.
//
// Every frame opens with `frame_header`; a bulk piece carries `piece_header` in front of its data. Numbers
// are little-endian. What is received is checked here, field by field, before anything is used.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "runtime/base/ids.hpp"
#include "transports/ucx/hello_proof.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

inline constexpr std::uint32_t ucx_frame_magic = 0x31505254; // "TRP1"
inline constexpr std::uint16_t ucx_protocol_version = 3;

enum class frame_kind : std::uint16_t {
  hello = 1,     // hello_body, then the sender's worker address; the first frame each way
  hello_ack,     // ack_body: the sender has received our hello
  goodbye,       // nothing: the sender closes the path
  message,       // the caller's payload
  bulk_announce, // bulk_body
  bulk_accept,   // bulk_body: send the pieces; not where they are sent whole
  bulk_refuse,   // bulk_body: the listener gave no room
  bulk_complete, // bulk_body: every piece has arrived
  bulk_taken,    // bulk_body, its `bytes` have arrived so far: of pieces that are sent whole
  bulk_piece,    // only in a piece_header
};

struct frame_header {
  std::uint32_t magic;
  std::uint16_t version;
  frame_kind kind;
  std::uint64_t job_high, job_low;
  std::uint64_t from_high, from_low;
  std::uint64_t path;     // the sender's number of this path; a later path to the same peer has a higher one
  std::uint64_t sequence; // 0 for hello and hello_ack; then 1, 2, ... per path and direction. Of a piece: 1,
                          // where its sender waits for bulk_taken
};
static_assert(sizeof(frame_header) == 56);

struct hello_body {
  std::uint64_t to_high, to_low; // whom the sender believes to reach
  std::uint64_t answers;         // the receiver's path that made the sender open this one; 0: its own wish
  std::uint64_t heard;           // the receiver's newest path that an earlier one of the sender's was for
  hello_proof proof;             // that the rendezvous let it in
};
static_assert(sizeof(hello_body) == 48);

struct ack_body {
  std::uint64_t path; // of the hello that has come
};

struct bulk_body {
  std::uint64_t transfer;
  std::uint64_t bytes; // of the whole transfer, but for bulk_taken
};

struct piece_header {
  frame_header frame;
  std::uint64_t transfer;
  std::uint64_t offset;
};

enum class frame_fault : unsigned char { none, malformed, wrong_version, wrong_job };

[[nodiscard]] frame_header make_frame_header(frame_kind kind, job_id job, incarnation_id from,
                                             std::uint64_t path, std::uint64_t sequence);

struct frame_view {
  frame_kind kind{};
  incarnation_id from;
  std::uint64_t path{0};
  std::uint64_t sequence{0};
  std::span<const std::byte> body;
};

// Reads and checks the header. `fault` says why nothing is returned.
[[nodiscard]] std::optional<frame_view> read_frame(std::span<const std::byte> bytes, job_id job,
                                                   frame_fault& fault);

struct piece_view {
  incarnation_id from;
  std::uint64_t path{0};
  std::uint64_t transfer{0};
  std::uint64_t offset{0};
  bool asks{false}; // for bulk_taken
};
[[nodiscard]] std::optional<piece_view> read_piece_header(std::span<const std::byte> bytes, job_id job,
                                                          frame_fault& fault);

// A trivially copyable body at the start of `bytes`, wherever that lies in memory.
template <class T>
[[nodiscard]] std::optional<T> read_body(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T body;
  std::memcpy(&body, bytes.data(), sizeof(T));
  return body;
}

} // namespace troupe
