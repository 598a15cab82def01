#include "transports/rendezvous/frame_cutter.hpp"

namespace troupe {

expected<std::optional<exchange_frame>> frame_cutter::filled(std::size_t bytes) {
  have_ += bytes;
  if (have_ < bytes_.size()) return std::optional<exchange_frame>{};
  const auto body = std::span{std::as_const(bytes_)}.subspan(frame_length_bytes);
  if (!body.empty()) {
    auto frame = decode_frame(body);
    if (!frame) return frame.failure();
    return std::optional{std::move(*frame)};
  }
  const auto length = frame_length(std::span{std::as_const(bytes_)}.first<frame_length_bytes>());
  if (length == 0 || length > bytes_max_) // RV-5
    return error{errc::refused, "no rendezvous frame came: one of " + std::to_string(length) +
                                    " bytes; at most " + std::to_string(bytes_max_) + " are taken here"};
  bytes_.resize(frame_length_bytes + length);
  return std::optional<exchange_frame>{};
}

} // namespace troupe
