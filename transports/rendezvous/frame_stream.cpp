#include "transports/rendezvous/frame_stream.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace troupe {
namespace {

namespace asio = boost::asio;
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t leftover_bytes_max = 64 * 1024;

error lost(std::string_view during, const boost::system::error_code& why) {
  return {errc::path_lost, std::string{during} + ": " + why.message()};
}

} // namespace

asio::awaitable<expected<exchange_frame>> receive_frame(asio::ip::tcp::socket& socket,
                                                        std::size_t bytes_max) {
  std::array<std::byte, frame_length_bytes> prefix{};
  const auto [no_prefix, prefix_bytes] = co_await asio::async_read(socket, asio::buffer(prefix), as_result);
  if (no_prefix) co_return lost("receiving", no_prefix);
  const auto length = frame_length(prefix);
  if (length == 0 || length > bytes_max)
    co_return error{errc::refused, "a frame of " + std::to_string(length) + " bytes; at most " +
                                       std::to_string(bytes_max) + " are taken here"};
  wire_bytes body(length);
  const auto [no_body, body_bytes] =
      co_await asio::async_read(socket, asio::buffer(body.data(), body.size()), as_result);
  if (no_body) co_return lost("receiving", no_body);
  co_return decode_frame(body);
}

asio::awaitable<expected<void>> send_frame(asio::ip::tcp::socket& socket, wire_bytes frame) {
  const auto [failed, bytes] =
      co_await asio::async_write(socket, asio::buffer(frame.data(), frame.size()), as_result);
  if (failed) co_return lost("sending", failed);
  co_return expected<void>{};
}

asio::awaitable<void> finish_sending(asio::ip::tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  std::array<std::byte, 1024> leftover{};
  for (std::size_t total = 0; total < leftover_bytes_max;) {
    const auto [ended, bytes] = co_await socket.async_read_some(asio::buffer(leftover), as_result);
    if (ended) co_return;
    total += bytes;
  }
}

asio::awaitable<void> pause_for(clock_seam& clock, duration delay) {
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [&clock, delay](auto handler) {
        clock.call_after(delay, [resume = std::move(handler)]() mutable { std::move(resume)(); });
      },
      asio::use_awaitable);
}

rendezvous_nonce fresh_nonce(entropy& random) {
  rendezvous_nonce nonce{};
  for (std::size_t at = 0; at < nonce.size(); at += sizeof(std::uint64_t)) {
    const auto word = random.next();
    std::memcpy(nonce.data() + at, &word, sizeof(word));
  }
  return nonce;
}

} // namespace troupe
