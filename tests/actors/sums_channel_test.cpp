// The collective's share of a process's network: its own messages and transfers, and nobody's path.
#include "actors/remote/sums_channel.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "tests/actors/support/remote_world.hpp"
#include "tests/support/recording_listener.hpp"
#include "transports/ring/ring_collective.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A process as a worker composes it: office, router, and the share that is lent to the collective.
struct sharing {
  sharing(test::world& w, std::uint64_t number)
      : at{w, number} {
    at.office.set_bulk_handler(&router);
    router.serve(bulk_channel::state, &state);
    at.office.set_control_handler([this](incarnation_id from, std::uint64_t type, auto body) {
      type == sums_channel::type ? sums.hear(from, body) : void(++others);
    });
    at.office.set_path_lost_handler(
        [this](incarnation_id who, const error& why) { sums.path_lost(who, why); });
  }

  struct of_state final : bulk_listener {
    std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& what) override {
      announced.push_back(what.transfer);
      room.resize(what.bytes);
      return room;
    }
    void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
    std::vector<std::uint64_t> announced;
    std::vector<std::byte> room;
  };
  of_state state;
  bulk_router router;
  test::process at;
  std::size_t others{0};
  sums_channel sums{at.office, router, *at.endpoint};
};

struct two_shares : test::world {
  sharing a{*this, 1};
  sharing b{*this, 2};
};

std::vector<std::byte> bytes_of(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

} // namespace

TEST_CASE("sums channel: messages and transfers of the collective go beside those of others (TR-1, BR-1)") {
  two_shares both;
  recording_listener heard;
  both.b.sums.set_listener(&heard);
  for (const auto size : {24U, 31U, 64U * 1024U})
    REQUIRE(both.a.sums.send(both.b.at.id, bytes_of(size)));
  REQUIRE(both.a.at.office.send_control(both.b.at.id, wire_type_of("other"), bytes_of(8)));
  const auto bulk = bytes_of(1000);
  int done = 0;
  both.a.sums.send_bulk(both.b.at.id, 7, bulk, [&](expected<void> sent) { done += sent ? 1 : 0; });
  both.a.at.office.send_bulk(both.b.at.id, bulk_router::number(bulk_channel::state, 7), bulk,
                             [&](expected<void> sent) { done += sent ? 1 : 0; });
  both.driver.settle();
  REQUIRE(heard.messages.size() == 3);
  CHECK(heard.messages[1].payload == bytes_of(31));
  CHECK(heard.messages[2].from == both.a.at.id);
  for (const auto& each : heard.messages)
    CHECK(each.aligned);
  CHECK(both.b.others == 1);
  CHECK(done == 2);
  CHECK(heard.bulks.at(7).bytes == bulk);
  CHECK(both.b.state.announced == std::vector<std::uint64_t>{7});
  both.b.sums.set_listener(nullptr);
}

TEST_CASE("sums channel: without a listener messages are dropped and transfers refused (UC-2)") {
  two_shares both;
  recording_listener heard;
  both.b.sums.set_listener(&heard);
  both.b.sums.set_listener(nullptr);
  REQUIRE(both.a.sums.send(both.b.at.id, bytes_of(24)));
  const auto bulk = bytes_of(100);
  std::optional<expected<void>> sent;
  both.a.sums.send_bulk(both.b.at.id, 7, bulk, [&](expected<void> result) { sent = std::move(result); });
  both.driver.settle();
  CHECK(heard.messages.empty());
  REQUIRE(sent);
  CHECK_FALSE(*sent);
  both.net.cut(both.b.at.id, both.a.at.id);
  both.driver.settle();
  CHECK(heard.losses.empty());
}

TEST_CASE("sums channel: it ends no path (UC-1), and hears of those that end") {
  two_shares both;
  recording_listener heard;
  both.b.sums.set_listener(&heard);
  both.a.sums.close(both.b.at.id);
  both.a.sums.drop(both.b.at.id);
  REQUIRE(both.a.sums.send(both.b.at.id, bytes_of(24)));
  both.driver.settle();
  CHECK(heard.messages.size() == 1);
  CHECK(both.b.sums.peers() == std::set{both.a.at.id});
  REQUIRE(both.a.sums.connect(both.b.at.id, {}));
  CHECK(both.a.sums.peers() == std::set{both.b.at.id});
  both.net.cut(both.b.at.id, both.a.at.id);
  both.driver.settle();
  CHECK(heard.losses_of(both.a.at.id) == 1);
  CHECK(both.b.sums.peers().empty());
  both.b.sums.set_listener(nullptr);
}

TEST_CASE("sums channel: questions and answers are of types of their own") {
  two_shares both;
  REQUIRE(both.a.sums.ask(both.b.at.id));
  REQUIRE(both.a.sums.answer_to(both.b.at.id));
  both.driver.settle();
  CHECK(both.b.others == 2);
  CHECK(both.b.sums.peers().empty());
}

TEST_CASE("sums channel: two rings sum through it, by messages and by transfers, and leave it in order") {
  for (const std::size_t elements : {64U, 100'000U}) {
    two_shares both;
    auto& device_a = both.driver.make_executor();
    auto& device_b = both.driver.make_executor();
    ring_collective ring_a{both.a.at.loop, device_a};
    ring_collective ring_b{both.b.at.loop, device_b};
    ring_a.attach(&both.a.sums);
    ring_b.attach(&both.b.sums);
    const collective_shape shape{.generation = generation_id{3},
                                 .world = 2,
                                 .shards = 8,
                                 .elements = elements,
                                 .members = {{both.a.at.id, {}}, {both.b.at.id, {}}}};
    const auto place = ring_a.prepare(shape).value();
    std::array members{std::move(ring_a.connect(place, shape, rank_id{0}).value()),
                       std::move(ring_b.connect(place, shape, rank_id{1}).value())};
    std::array<std::uint64_t, 2> numbers{};
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::ranges::fill(members[rank]->contribution(0), static_cast<float>(rank + 1));
      members[rank]->all_reduce([&numbers, rank, elements](expected<reduction> sum) {
        REQUIRE(sum);
        CHECK(std::ranges::count(sum->sum, 3.0F) == static_cast<std::ptrdiff_t>(elements));
        numbers[rank] = sum->number;
      });
    }
    both.driver.settle();
    CHECK(numbers == std::array<std::uint64_t, 2>{1, 1});
    ring_a.attach(nullptr);
    ring_b.attach(nullptr);
  }
}
