// Frame stream: frames over a TCP socket, in the clear or inside TLS, as coroutines. Private to this room.
//
// Owns:     the socket, and the TLS session once one was started.
// Runs on:  the event loop; one coroutine at a time. Whoever waits is woken by `close`.
// Fails:    errc::path_lost: the socket; errc::refused: what was received, or what TLS refuses.
#pragma once

#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/entropy.hpp"
#include "transports/rendezvous/exchange.hpp"
#include "transports/rendezvous/tls_context.hpp"

namespace troupe {

class frame_stream {
public:
  explicit frame_stream(boost::asio::ip::tcp::socket socket)
      : socket_{std::move(socket)} {}
  // To be connected, or connected again after `close`: what comes next is in the clear.
  [[nodiscard]] boost::asio::ip::tcp::socket& unconnected();

  // Whether the first byte of the peer begins TLS. It is looked at, not taken.
  [[nodiscard]] boost::asio::awaitable<expected<bool>> peer_begins_tls();
  // The handshake; from here on everything is inside. `host`: whom a joiner means. `with` outlives us.
  [[nodiscard]] boost::asio::awaitable<expected<void>> start_tls(const tls_context& with, std::string host);
  // What only the two ends of this TLS session know; empty without TLS.
  [[nodiscard]] const wire_bytes& binding() const { return binding_; }

  [[nodiscard]] boost::asio::awaitable<expected<exchange_frame>> receive(std::size_t bytes_max);
  [[nodiscard]] boost::asio::awaitable<expected<void>> send(wire_bytes frame);
  // Ends the sending side and waits for the other's end: the last frame or alert is not lost to a reset.
  [[nodiscard]] boost::asio::awaitable<void> finish_sending();
  void close();

private:
  [[nodiscard]] error failed(std::string_view during, const boost::system::error_code& why);

  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  const tls_context* tls_context_{nullptr};
  std::string host_;
  wire_bytes binding_;
};

[[nodiscard]] boost::asio::awaitable<void> pause_for(clock_seam& clock, duration delay);
[[nodiscard]] rendezvous_nonce fresh_nonce(entropy& random);

} // namespace troupe
