// The other process of the UCX tests: joins its parent, then does what its role says until it is killed.
//
// Arguments: ROLE PARENT_INCARNATION PARENT_ADDRESS (hex). Prints its own incarnation and address, one line.
//   echo    sends every message back; keeps bulk that is offered
//   source  answers every message with an endless row of bulk transfers
//   exit    says goodbye after the first message, and ends
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/asio_loop.hpp"
#include "tests/support/peer_process.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {
namespace {

class peer final : public transport_listener {
public:
  peer(std::string role, incarnation_id parent)
      : role_{std::move(role)}
      , parent_{parent} {}

  int run(const peer_address& address) {
    const auto self = random_id_from<incarnation_id>(loop_.random);
    auto opened = ucx_transport::open(loop_.context, loop_.clock, self, {});
    if (!opened) return 1;
    network_ = std::move(opened.value());
    network_->set_job(peer_job, peer_secret);
    network_->set_listener(this);
    std::printf("%s %s\n", to_string(self).c_str(), hex_of(network_->local_address()).c_str());
    std::fflush(stdout);
    if (!network_->connect(parent_, address)) return 1;
    while (!ended_ || !network_->idle())
      loop_.context.run_one();
    return 0;
  }

  void on_message(incarnation_id from, std::span<const std::byte> payload) override {
    if (role_ == "exit") {
      network_->close(from);
      ended_ = true;
    } else if (role_ == "source") {
      send_next();
    } else {
      (void)network_->send(from, payload);
    }
  }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& what) override {
    bulk_.resize(what.bytes);
    return bulk_;
  }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
  void on_path_lost(incarnation_id, const error&) override { ended_ = true; }

private:
  void send_next() {
    bulk_.resize(std::size_t{64} << 20U, std::byte{3});
    network_->send_bulk(parent_, ++transfer_, bulk_, [this](const expected<void>& result) {
      if (result) send_next();
    });
  }

  std::string role_;
  incarnation_id parent_;
  asio_loop loop_;
  std::unique_ptr<ucx_transport> network_;
  std::vector<std::byte> bulk_;
  std::uint64_t transfer_{0};
  bool ended_{false};
};

} // namespace
} // namespace troupe::test

int main(int argc, char** argv) {
  using namespace troupe::test;
  if (argc != 4) return 2;
  return peer{argv[1], incarnation_of(argv[2])}.run(address_of(argv[3]));
}
