// Frames over a TCP socket, as coroutines. Private to this room.
//
// Errors: errc::path_lost for the socket, errc::refused for what was received.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/entropy.hpp"
#include "transports/rendezvous/exchange.hpp"

namespace troupe {

[[nodiscard]] boost::asio::awaitable<expected<exchange_frame>>
receive_frame(boost::asio::ip::tcp::socket& socket, std::size_t bytes_max);
[[nodiscard]] boost::asio::awaitable<expected<void>> send_frame(boost::asio::ip::tcp::socket& socket,
                                                                wire_bytes frame);
// Ends the sending side and waits for the other's end, so that the last frame is not lost to a reset.
[[nodiscard]] boost::asio::awaitable<void> finish_sending(boost::asio::ip::tcp::socket& socket);
[[nodiscard]] boost::asio::awaitable<void> pause_for(clock_seam& clock, duration delay);
[[nodiscard]] rendezvous_nonce fresh_nonce(entropy& random);

} // namespace troupe
