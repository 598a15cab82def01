// Transport benchmark: half round trips and bulk rates between two processes, through the transport seam.
//
// One line a size: bytes, half round trip p50 and p99 in microseconds. Then bulk: MiB and GB/s.
#include <algorithm>
#include <cstdio>

#include "tests/support/asio_loop.hpp"
#include "tests/support/peer_process.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {
namespace {

using bench_clock = std::chrono::steady_clock;

double us_since(bench_clock::time_point start) {
  return std::chrono::duration<double, std::micro>(bench_clock::now() - start).count();
}

class bench final : public transport_listener {
public:
  int run() {
    auto opened =
        ucx_transport::open(loop_.context, loop_.clock, random_id_from<incarnation_id>(loop_.random), {});
    if (!opened) return 1;
    network_ = std::move(opened.value());
    network_->set_job(peer_job, peer_secret);
    network_->set_listener(this);
    const peer_process peer{TROUPE_UCX_PEER, "echo", *network_};
    who_ = peer.who();
    if (!network_->connect(who_, peer.address())) return 1;
    for (const std::size_t bytes : {8U, 1024U, 65536U})
      round_trips(bytes, bytes > 8192 ? 3000 : 20'000);
    for (const std::size_t mib : {1U, 16U, 64U})
      bulk(mib << 20U);
    return lost_ ? 1 : 0;
  }
  void on_message(incarnation_id, std::span<const std::byte>) override { ++answers_; }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement&) override { return {}; }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
  void on_path_lost(incarnation_id, const error& cause) override {
    std::printf("path lost: %s\n", cause.text.c_str());
    lost_ = true;
  }

private:
  void round_trips(std::size_t bytes, std::size_t rounds) {
    const std::vector<std::byte> payload(bytes);
    std::vector<double> halves;
    halves.reserve(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      const auto before = answers_;
      const auto start = bench_clock::now();
      (void)network_->send(who_, payload);
      while (answers_ == before && !lost_)
        loop_.context.run_one();
      halves.push_back(us_since(start) / 2);
    }
    std::ranges::sort(halves);
    std::printf("message %7zu B   half round trip p50 %7.2f us   p99 %7.2f us\n", bytes, halves[rounds / 2],
                halves[rounds * 99 / 100]);
  }
  void bulk(std::size_t bytes) {
    const std::vector<std::byte> source(bytes, std::byte{1});
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      bool complete = false;
      const auto start = bench_clock::now();
      network_->send_bulk(who_, ++transfer_, source, [&](const expected<void>&) { complete = true; });
      while (!complete && !lost_)
        loop_.context.run_one();
      best = std::max(best, static_cast<double>(bytes) / us_since(start) / 1000);
    }
    std::printf("bulk    %7zu MiB best of 5 %7.2f GB/s\n", bytes >> 20U, best);
  }

  asio_loop loop_;
  std::unique_ptr<ucx_transport> network_;
  incarnation_id who_;
  std::uint64_t transfer_{0};
  std::size_t answers_{0};
  bool lost_{false};
};

} // namespace
} // namespace troupe::test

int main() {
  return troupe::test::bench{}.run();
}
