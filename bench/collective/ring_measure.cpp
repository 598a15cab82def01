#include "bench/collective/ring_measure.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "bench/collective/rank_measure.hpp"
#include "runtime/base/buffer_pool.hpp"
#include "tests/support/notice_board.hpp"
#include "tests/support/ring_process.hpp"

namespace troupe::bench {

namespace {

// One end of a pair that sends, receives, or both; a round ends when all that it takes part in has arrived.
class bulk_end final : public transport_listener {
public:
  bulk_end(test::ring_process& process, incarnation_id peer, bool sends, bool receives, std::size_t bytes)
      : process_{process}
      , peer_{peer}
      , sends_{sends}
      , receives_{receives}
      , memory_{2 * bytes}
      , out_{memory_.bytes().first(bytes)}
      , in_{memory_.bytes().last(bytes)} {}

  [[nodiscard]] std::span<std::byte> outgoing() const { return out_; }
  // Blocks until this round is over.
  [[nodiscard]] bool run() {
    ++round_;
    if (sends_)
      process_.loop().post([this, round = round_] {
        process_.network().send_bulk(
            peer_, round, out_, [this](const expected<void>& result) { note(sent_, result.has_value()); });
      });
    std::unique_lock lock{mutex_};
    told_.wait(lock, [&] {
      return failed_ || ((!sends_ || sent_ == round_) && (!receives_ || received_ == round_));
    });
    return !failed_;
  }

  void on_message(incarnation_id, std::span<const std::byte>) override {}
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement&) override { return in_; }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void> result) override {
    note(received_, result.has_value());
  }
  void on_path_lost(incarnation_id, const error&) override { note(received_, false); }

private:
  void note(std::uint64_t& count, bool good) {
    const std::lock_guard lock{mutex_};
    ++count;
    failed_ = failed_ || !good;
    told_.notify_one();
  }
  test::ring_process& process_;
  incarnation_id peer_;
  bool sends_, receives_;
  touched_memory memory_;
  std::span<std::byte> out_, in_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::uint64_t round_{0}, sent_{0}, received_{0};
  bool failed_{false};
};

// Lives until the process exits.
expected<test::ring_process*> open_at(const std::vector<network_place>& places, std::uint32_t rank,
                                      const ring_settings& settings) {
  ucx_settings lanes;
  if (rank < places.size()) {
    if (auto entered = enter(places[rank]); !entered) return entered.failure();
    lanes.devices = places[rank].device;
  }
  return new test::ring_process{settings, std::move(lanes)};
}

} // namespace

expected<timed_row> measure_ring(std::uint32_t ranks, std::size_t bytes, std::uint32_t iterations,
                                 const std::vector<network_place>& places, ring_settings settings) {
  test::notice_board board{ranks};
  return measure({.system = "troupe-ring", .canonical = true, .ranks = ranks, .bytes = bytes}, iterations,
                 [&](std::uint32_t rank) -> expected<operation> {
                   auto made = open_at(places, rank, settings);
                   if (!made) return made.failure();
                   auto* here = *made;
                   const collective_shape shape{.generation = generation_id{1},
                                                .world = ranks,
                                                .shards = ranks,
                                                .elements = bytes / sizeof(float),
                                                .members = board.exchange(rank, here->who())};
                   const auto descriptor = here->ring().prepare(shape);
                   if (!descriptor) return descriptor.failure();
                   auto connected = here->connect(*descriptor, shape, rank);
                   if (!connected) return connected.failure();
                   const std::shared_ptr<communicator> member{std::move(*connected)};
                   const auto input = member->contribution(0);
                   return operation{[input](float value) { std::fill(input.begin(), input.end(), value); },
                                    [member] {
                                      bool summed = false;
                                      member->all_reduce([&](const expected<reduction>& done) {
                                        summed = done.has_value();
                                      });
                                      return summed;
                                    }};
                 });
}

expected<timed_row> measure_bulk(bool both_ways, std::size_t bytes, std::uint32_t iterations,
                                 const std::vector<network_place>& places) {
  test::notice_board board{2};
  return measure({.system = both_ways ? "ucx-both-ways" : "ucx-one-way", .ranks = 2, .bytes = bytes},
                 iterations, [&](std::uint32_t rank) -> expected<operation> {
                   auto made = open_at(places, rank, {});
                   if (!made) return made.failure();
                   auto* here = *made;
                   const auto peers = board.exchange(rank, here->who());
                   if (peers.size() != 2) return error{errc::timed_out, "the other rank did not come"};
                   const auto& peer = peers[1 - rank];
                   // Until the process exits.
                   auto* end = new bulk_end{*here, peer.incarnation, both_ways || rank == 0,
                                            both_ways || rank == 1, bytes};
                   test::on(here->loop(), [&] {
                     here->ring().attach(nullptr);
                     here->network().set_listener(end);
                     (void)here->network().connect(peer.incarnation, peer.address);
                   });
                   return operation{[end](float value) {
                                      const auto memory = end->outgoing();
                                      std::fill(memory.begin(), memory.end(), static_cast<std::byte>(value));
                                    },
                                    [end] { return end->run(); }};
                 });
}

} // namespace troupe::bench
