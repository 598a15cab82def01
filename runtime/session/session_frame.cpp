#include "runtime/session/session_frame.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/session/limits.hpp"

namespace troupe {
namespace {

constexpr std::string_view hex_digits = "0123456789abcdef";

} // namespace

std::optional<session_header> read_session_header(std::span<const std::byte> frame) {
  session_header header;
  if (frame.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, frame.data(), sizeof(header));
  if (header.magic != session_magic) return std::nullopt;
  if (header.kind < session_kind::batch || header.kind > session_kind::found) return std::nullopt;
  if (header.lane > session_lane_id::urgent) return std::nullopt;
  const bool batch = header.kind == session_kind::batch;
  if (batch != (header.count > 0) || batch != (header.sequence > 0)) return std::nullopt;
  return header;
}

std::optional<std::span<const std::byte>> take_message(std::span<const std::byte>& left) {
  message_header header;
  if (left.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, left.data(), sizeof(header));
  const auto takes = batched_bytes(header.bytes);
  if (header.zero != 0 || header.bytes > limits::envelope_bytes_max || takes > left.size())
    return std::nullopt;
  const auto message = left.subspan(sizeof(header), header.bytes);
  left = left.subspan(takes);
  return message;
}

std::optional<resume_view> read_resume(std::span<const std::byte> frame) {
  resume_body body;
  auto left = frame.subspan(sizeof(session_header));
  if (left.size() < sizeof(body)) return std::nullopt;
  std::memcpy(&body, left.data(), sizeof(body));
  left = left.subspan(sizeof(body));
  if (body.done_count > limits::session_done_transfers_max ||
      body.address_bytes > limits::session_address_bytes_max ||
      left.size() != body.done_count * sizeof(std::uint64_t) + body.address_bytes)
    return std::nullopt;
  const auto done_bytes = body.done_count * sizeof(std::uint64_t);
  return resume_view{left.first(done_bytes), left.subspan(done_bytes)};
}

std::optional<transfer_body> read_transfer(std::span<const std::byte> frame) {
  transfer_body body;
  if (frame.size() != sizeof(session_header) + sizeof(body)) return std::nullopt;
  std::memcpy(&body, frame.data() + sizeof(session_header), sizeof(body));
  const auto is_hex = [](char each) { return hex_digits.find(each) != std::string_view::npos; };
  if (body.zero != 0 || !std::ranges::all_of(body.digest, is_hex)) return std::nullopt;
  return body;
}

} // namespace troupe
