#include "transports/rendezvous/frame_stream.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "transports/rendezvous/frame_cutter.hpp"

namespace troupe {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t leftover_bytes_max = 64 * 1024;
// A TLS record of a handshake. No frame begins so: the low byte of its length is a multiple of 8.
constexpr unsigned char tls_first_byte = 0x16;

} // namespace

tcp::socket& frame_stream::unconnected() {
  tls_.reset();
  binding_.clear();
  return socket_;
}

error frame_stream::failed(std::string_view during, const boost::system::error_code& why) {
  if (tls_ && why.category() == asio::error::get_ssl_category())
    return tls_context_->explain(static_cast<unsigned>(why.value()), *tls_->native_handle(), host_);
  return {errc::path_lost, std::string{during} + ": " + why.message()};
}

asio::awaitable<expected<bool>> frame_stream::peer_begins_tls() {
  unsigned char first = 0;
  const auto [unread, bytes] =
      co_await socket_.async_receive(asio::buffer(&first, 1), tcp::socket::message_peek, as_result);
  if (unread) co_return failed("receiving", unread);
  co_return first == tls_first_byte;
}

asio::awaitable<expected<void>> frame_stream::start_tls(const tls_context& with, std::string host) {
  tls_context_ = &with;
  host_ = std::move(host);
  tls_.emplace(socket_, with.new_session(host_));
  const auto side = with.listens() ? asio::ssl::stream_base::server : asio::ssl::stream_base::client;
  const auto [refused] = co_await tls_->async_handshake(side, as_result);
  if (refused) co_return failed("TLS handshake", refused);
  binding_ = tls_context::binding_of(*tls_->native_handle());
  co_return expected<void>{};
}

asio::awaitable<expected<exchange_frame>> frame_stream::receive(std::size_t bytes_max) {
  frame_cutter cutter{bytes_max};
  for (;;) {
    const auto room = cutter.room();
    const auto buffer = asio::buffer(room.data(), room.size());
    boost::system::error_code unread;
    std::size_t bytes = 0;
    if (tls_)
      std::tie(unread, bytes) = co_await tls_->async_read_some(buffer, as_result);
    else
      std::tie(unread, bytes) = co_await socket_.async_read_some(buffer, as_result);
    if (unread) co_return failed("receiving", unread);
    auto frame = cutter.filled(bytes);
    if (!frame) co_return frame.failure();
    if (*frame) co_return std::move(**frame);
  }
}

asio::awaitable<expected<void>> frame_stream::send(wire_bytes frame) {
  const auto buffer = asio::buffer(frame.data(), frame.size());
  boost::system::error_code unsent;
  std::size_t bytes = 0;
  if (tls_)
    std::tie(unsent, bytes) = co_await asio::async_write(*tls_, buffer, as_result);
  else
    std::tie(unsent, bytes) = co_await asio::async_write(socket_, buffer, as_result);
  if (unsent) co_return failed("sending", unsent);
  co_return expected<void>{};
}

// Below TLS: everything it had to say was written, and what still comes is not looked at.
asio::awaitable<void> frame_stream::finish_sending() {
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  std::array<std::byte, 1024> leftover{};
  for (std::size_t total = 0; total < leftover_bytes_max;) {
    const auto [ended, bytes] = co_await socket_.async_read_some(asio::buffer(leftover), as_result);
    if (ended) co_return;
    total += bytes;
  }
}

void frame_stream::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
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
