// UCX between processes, with real kills. Each case waits for events; the deadline is the loop's.
#include <filesystem>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include "tests/support/asio_loop.hpp"
#include "tests/support/peer_process.hpp"
#include "tests/support/recording_listener.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {
namespace {

constexpr const char* peer_program = TROUPE_UCX_PEER;
constexpr std::size_t bulk_bytes = std::size_t{64} << 20U;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"})
    ++count;
  return count;
}

struct parent {
  asio_loop loop;
  recording_listener listener;
  std::unique_ptr<ucx_transport> network;

  explicit parent(ucx_settings settings = {}) {
    auto opened = ucx_transport::open(loop.context, loop.clock, random_id_from<incarnation_id>(loop.random),
                                      std::move(settings));
    REQUIRE(opened);
    network = std::move(opened.value());
    network->set_job(peer_job, peer_secret);
    network->set_listener(&listener);
  }
  // Connects and waits for the first answer.
  void meet(const peer_process& peer) {
    REQUIRE(peer.who().valid());
    REQUIRE(network->connect(peer.who(), peer.address()));
    const auto before = listener.messages.size();
    REQUIRE(network->send(peer.who(), std::vector<std::byte>(8)));
    REQUIRE(loop.run_until([&] { return listener.messages.size() > before; }));
  }
  [[nodiscard]] bool lost(const peer_process& peer) {
    return loop.run_until([&] { return listener.losses_of(peer.who()) == 1; });
  }
};

TEST_CASE("ucx: an idle peer that is killed is a lost path, once (TR-2)") {
  parent self;
  peer_process peer{peer_program, "echo", *self.network};
  self.meet(peer);
  peer.kill();
  REQUIRE(self.lost(peer));
  CHECK(self.listener.losses.back().cause.code == errc::path_lost);
  CHECK(self.network->send(peer.who(), {}).failure().code == errc::path_lost);
  REQUIRE(self.network->connect(peer.who(), peer.address())); // another path is another try
  REQUIRE(self.loop.run_until([&] { return self.listener.losses.size() == 2; }));
  INFO(self.listener.losses.back().cause.text);
  CHECK(self.listener.losses.back().cause.code == errc::refused); // nobody listens there any more
  REQUIRE(self.loop.run_until([&] { return self.network->idle(); }));
}

// A turn of the loop makes a bounded number of progress calls, and one piece at a time needs at least one for
// each: no turn can get through the whole transfer, however long this process was kept from running.
TEST_CASE("ucx: a peer killed while it receives 64 MiB: the completion comes once (TR-3)") {
  parent self{{.bulk_piece_bytes = 64U << 10U, .bulk_pieces_in_flight = 1}};
  peer_process peer{peer_program, "echo", *self.network};
  self.meet(peer);
  std::vector<std::byte> source(bulk_bytes);
  unsigned completions = 0;
  std::optional<expected<void>> result;
  self.network->send_bulk(peer.who(), 1, source, [&](expected<void> outcome) {
    ++completions;
    result = std::move(outcome);
  });
  REQUIRE(self.loop.run_until([&] { return self.network->counters().bytes_sent > bulk_bytes / 8; }));
  peer.kill();
  REQUIRE(self.lost(peer));
  REQUIRE(self.loop.run_until([&] { return result && self.network->idle(); }));
  CHECK(completions == 1);
  CHECK(result->failure().code == errc::path_lost);
}

TEST_CASE("ucx: a peer killed while it sends 64 MiB: the span comes back, then the loss (TR-2)") {
  parent self;
  peer_process peer{peer_program, "source", *self.network};
  REQUIRE(self.network->connect(peer.who(), peer.address()));
  REQUIRE(self.network->send(peer.who(), std::vector<std::byte>(8)));
  REQUIRE(self.loop.run_until([&] { return self.network->counters().bytes_received > bulk_bytes / 8; }));
  peer.kill();
  REQUIRE(self.lost(peer));
  for (const auto& [transfer, bulk] : self.listener.bulks)
    CHECK(bulk.result.has_value());
  REQUIRE(self.loop.run_until([&] { return self.network->idle(); }));
  CHECK(self.listener.handed_up_after_loss == 0);
}

TEST_CASE("ucx: a peer that is stopped and goes on keeps its path (heartbeats judge it, not UCX)") {
  parent self;
  peer_process peer{peer_program, "echo", *self.network};
  self.meet(peer);
  peer.signal(SIGSTOP);
  REQUIRE(self.network->send(peer.who(), std::vector<std::byte>(8)));
  bool resumed = false;
  self.loop.clock.call_after(std::chrono::seconds{3}, [&] { // beyond every keepalive of the path
    peer.signal(SIGCONT);
    resumed = true;
  });
  const auto before = self.listener.messages.size();
  REQUIRE(self.loop.run_until([&] { return resumed && self.listener.messages.size() == before + 1; }));
  CHECK(self.listener.losses.empty());
}

TEST_CASE("ucx: a peer that says goodbye is told apart from one that was killed") {
  parent self;
  peer_process peer{peer_program, "exit", *self.network};
  REQUIRE(self.network->connect(peer.who(), peer.address()));
  REQUIRE(self.network->send(peer.who(), std::vector<std::byte>(8)));
  REQUIRE(self.lost(peer));
  CHECK(self.listener.losses.back().cause.code == errc::actor_stopped);
  CHECK(peer.wait() == 0);
  REQUIRE(self.loop.run_until([&] { return self.network->idle(); }));
}

TEST_CASE("ucx: a killed peer comes back 20 times under new incarnations; no descriptor is left") {
  parent self;
  std::size_t after_first = 0;
  for (int cycle = 0; cycle < 20; ++cycle) {
    peer_process peer{peer_program, cycle % 2 == 0 ? "echo" : "source", *self.network};
    if (cycle % 2 == 0) {
      self.meet(peer);
    } else {
      const auto before = self.network->counters().bytes_received;
      REQUIRE(self.network->connect(peer.who(), peer.address()));
      REQUIRE(self.network->send(peer.who(), std::vector<std::byte>(8)));
      REQUIRE(self.loop.run_until([&] { return self.network->counters().bytes_received > before; }));
    }
    peer.kill();
    REQUIRE(self.lost(peer));
    REQUIRE(self.loop.run_until([&] { return self.network->idle(); }));
    self.listener.bulks.clear();
    if (cycle == 1) after_first = open_descriptors();
  }
  CHECK(open_descriptors() <= after_first);
  CHECK(self.network->counters().paths_lost == 20);
}

} // namespace
} // namespace troupe::test
