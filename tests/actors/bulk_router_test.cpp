#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "actors/remote/bulk_router.hpp"

namespace troupe {
namespace {

constexpr incarnation_id peer{1, 2};

struct user final : bulk_listener {
  std::vector<std::uint64_t> announced, received;
  std::vector<std::byte> room;
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    CHECK(from == peer);
    announced.push_back(what.transfer);
    room.resize(what.bytes);
    return room;
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    CHECK((from == peer && result));
    received.push_back(transfer);
  }
};

TEST_CASE("bulk router: each user gets its own transfers, by its own numbers (BR-1)") {
  bulk_router router;
  user state;
  user sums;
  router.serve(bulk_channel::state, &state);
  router.serve(bulk_channel::sums, &sums);
  CHECK(bulk_router::number(bulk_channel::state, 7) == 7);
  const auto other = bulk_router::number(bulk_channel::sums, 7);
  CHECK(router.on_bulk_announced(peer, {7, 10}).size() == 10);
  CHECK(router.on_bulk_announced(peer, {other, 20}).size() == 20);
  router.on_bulk_received(peer, other, {});
  CHECK(state.announced == std::vector<std::uint64_t>{7});
  CHECK(state.received.empty());
  CHECK(sums.announced == std::vector<std::uint64_t>{7});
  CHECK(sums.received == std::vector<std::uint64_t>{7});
}

TEST_CASE("bulk router: what nobody serves is refused (BR-2)") {
  bulk_router router;
  user sums;
  const auto number = bulk_router::number(bulk_channel::sums, 1);
  CHECK(router.on_bulk_announced(peer, {number, 10}).empty());
  router.serve(bulk_channel::sums, &sums);
  CHECK(router.on_bulk_announced(peer, {number, 10}).size() == 10);
  router.serve(bulk_channel::sums, nullptr);
  CHECK(router.on_bulk_announced(peer, {number, 10}).empty());
  router.on_bulk_received(peer, number, {});
  CHECK(router.on_bulk_announced(peer, {~std::uint64_t{0}, 10}).empty());
  CHECK(sums.received.empty());
}

} // namespace
} // namespace troupe
