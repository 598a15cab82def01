// A house with a door: a rendezvous server on a loop, and those who come to it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch_test_macros.hpp>

#include "tests/support/asio_loop.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/rendezvous/exchange.hpp"
#include "transports/rendezvous/listen_address.hpp"

namespace troupe::test {

inline join_offer some_offer() {
  return {.incarnation = {1, 2},
          .pid = 42,
          .host = "host-a",
          .machine = "boot/pid:[1]/0",
          .program = "fashion_mnist",
          .slot = 3,
          .address = peer_address(200, std::byte{7})};
}
inline join_answer some_answer() {
  return {
      .job = {5, 6}, .director = {7, 8}, .address = peer_address(100, std::byte{9}), .settings = "opaque"};
}

struct house {
  asio_loop loop;
  job_token token{job_token::generate(loop.random)};
  std::vector<join_offer> offers;
  std::optional<error> turn_down; // what the director decides
  std::string settings{some_answer().settings};
  std::unique_ptr<asio_rendezvous_server> server;

  explicit house(rendezvous_server_settings with = {}) {
    server = std::make_unique<asio_rendezvous_server>(loop.context, loop.clock, loop.random, token, with);
    REQUIRE(server->start([this](const join_offer& offer) -> expected<join_answer> {
      offers.push_back(offer);
      if (turn_down) return *turn_down;
      auto answer = some_answer();
      answer.settings = settings;
      return answer;
    }));
  }
  [[nodiscard]] std::uint16_t port() const { return parse_host_port("", server->endpoint())->port; }
  expected<join_answer> join(const job_token& held, rendezvous_client_settings with = {}) {
    return join_at(server->endpoint(), held, with);
  }
  expected<join_answer> join_at(const std::string& endpoint, const job_token& held,
                                rendezvous_client_settings with = {}) {
    asio_rendezvous_client client{loop.context, loop.clock, loop.random, held, with};
    std::optional<expected<join_answer>> result;
    unsigned calls = 0;
    client.join(endpoint, some_offer(), std::chrono::seconds{10}, [&](expected<join_answer> answer) {
      result = std::move(answer);
      ++calls;
    });
    REQUIRE(loop.run_until([&] { return result.has_value(); }));
    loop.context.poll();
    CHECK(calls == 1);
    return *result;
  }
  // A socket that says `bytes` and nothing else.
  boost::asio::ip::tcp::socket stranger(const wire_bytes& bytes) {
    boost::asio::ip::tcp::socket socket{loop.context};
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port()});
    boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()));
    return socket;
  }
};

} // namespace troupe::test
