// What only the UCX transport promises (UX-1 .. UX-5), within one process.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <sys/socket.h>
#include <ucs/sys/event_set.h>
#include <unistd.h>

#include "runtime/base/dead_incarnations.hpp"
#include "runtime/base/limits.hpp"
#include "tests/support/allocation_count.hpp"
#include "tests/support/transport_pairs.hpp"
#include "transports/ucx/event_order.hpp"
#include "transports/ucx/frame.hpp"
#include "transports/ucx/hello_proof.hpp"
#include "transports/ucx/send_pool.hpp"

namespace troupe::test {
namespace {

const std::vector<std::byte> payload(16);

ucx_transport& ucx(const std::unique_ptr<transport>& end) {
  return dynamic_cast<ucx_transport&>(*end);
}

TEST_CASE("ucx: a path runs on tcp alone, and says so") {
  ucx_pair pair;
  pair.connect();
  REQUIRE(pair.a->send(pair.b->self(), payload));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; }));
  const auto lanes = ucx(pair.a).lanes(pair.b->self());
  CHECK(lanes.find("tcp/lo") != std::string::npos);
  CHECK(lanes.find("sysv") == std::string::npos);
  CHECK(ucx(pair.a).lanes(pair.fresh()).empty());
}

TEST_CASE("ucx: another job's hello is dropped and counted; the sender sees a lost path (UX-3)") {
  ucx_pair pair;
  ucx_settings settings;
  settings.handshake_timeout = std::chrono::milliseconds{50};
  auto opened = ucx_transport::open(pair.loop.context, pair.loop.clock, pair.fresh(), settings);
  REQUIRE(opened);
  auto& stranger = **opened;
  recording_listener at_stranger;
  stranger.set_listener(&at_stranger);
  CHECK(stranger.connect(pair.b->self(), pair.b->local_address()).failure().code == errc::bad_argument);
  stranger.set_job({9, 9}, ucx_pair::secret());
  REQUIRE(stranger.connect(pair.b->self(), pair.b->local_address()));
  REQUIRE(stranger.send(pair.b->self(), payload));
  REQUIRE(pair.loop.run_until([&] { return at_stranger.losses.size() == 1; }));
  CHECK(at_stranger.losses.front().cause.code == errc::path_lost);
  CHECK(ucx(pair.b).counters().dropped_stale == 1);
  CHECK(pair.at_b.messages.empty());
  REQUIRE(pair.loop.run_until([&] { return stranger.idle() && ucx(pair.b).idle(); }));
}

TEST_CASE("ucx: a hello without the proof of the job's secret is dropped and counted (UX-6)") {
  ucx_pair pair;
  ucx_settings settings;
  settings.handshake_timeout = std::chrono::milliseconds{50};
  auto opened = ucx_transport::open(pair.loop.context, pair.loop.clock, pair.fresh(), settings);
  REQUIRE(opened);
  auto& stranger = **opened; // knows the job's id, which has crossed in the clear, and not its secret
  recording_listener at_stranger;
  stranger.set_listener(&at_stranger);
  stranger.set_job(ucx_pair::job, path_secret{path_secret::key{std::byte{8}}});
  REQUIRE(stranger.connect(pair.b->self(), pair.b->local_address()));
  REQUIRE(stranger.send(pair.b->self(), payload));
  REQUIRE(pair.loop.run_until([&] { return at_stranger.losses.size() == 1; }));
  CHECK(ucx(pair.b).counters().dropped_unproved == 1);
  CHECK(ucx(pair.b).counters().dropped_stale == 0);
  CHECK(ucx(pair.b).counters().paths_opened == 0);
  CHECK(pair.at_b.messages.empty());
  // Nor is the stranger believed by whoever connects to it: no hello of its comes through.
  REQUIRE(pair.a->connect(stranger.self(), stranger.local_address()));
  REQUIRE(pair.loop.run_until([&] { return stranger.counters().dropped_unproved == 1; }));
  CHECK(ucx(pair.a).counters().paths_opened == 0);
}

TEST_CASE(
    "ucx: the proof of a hello covers the secret, the job, both ends, the path and the address (UX-6)") {
  path_secret::key key{};
  for (std::size_t at = 0; at < key.size(); ++at)
    key[at] = static_cast<std::byte>(at);
  const path_secret secret{key};
  constexpr std::string_view text = "address";
  const auto address = std::as_bytes(std::span{text});
  const hello_claim claim{.job = {1, 2}, .from = {3, 4}, .to = {5, 6}, .path = 7, .address = address};
  const auto proof = prove_hello(secret, claim);
  // Computed by Python's hmac and hashlib: 948e7a7e5fe726c2585a891c43212322.
  const std::array<std::uint8_t, 16> want{0x94, 0x8e, 0x7a, 0x7e, 0x5f, 0xe7, 0x26, 0xc2,
                                          0x58, 0x5a, 0x89, 0x1c, 0x43, 0x21, 0x23, 0x22};
  CHECK(std::ranges::equal(proof, std::as_bytes(std::span{want})));
  CHECK(proves(proof, secret, claim));
  key[31] ^= std::byte{1};
  CHECK_FALSE(proves(proof, path_secret{key}, claim));
  for (int field = 0; field < 5; ++field) {
    auto other = claim;
    if (field == 0) other.job = {1, 3};
    if (field == 1) other.from = {3, 5};
    if (field == 2) other.to = {3, 4};
    if (field == 3) other.path = 8;
    if (field == 4) other.address = address.first(6);
    CHECK_FALSE(proves(proof, secret, other));
  }
  CHECK_FALSE(proves(prove_hello({}, claim), {}, claim)); // no secret proves nothing
}

TEST_CASE("ucx: a hello that comes before the job is known is heard once it is (UX-3)") {
  ucx_pair pair;
  auto opened = ucx_transport::open(pair.loop.context, pair.loop.clock, pair.fresh(), {});
  REQUIRE(opened);
  auto& late = **opened;
  recording_listener at_late;
  late.set_listener(&at_late);
  REQUIRE(pair.a->connect(late.self(), late.local_address()));
  REQUIRE(pair.a->send(late.self(), payload));
  // Another path opens meanwhile, so the first hello has arrived as well.
  pair.connect();
  REQUIRE(pair.a->send(pair.b->self(), payload));
  REQUIRE(pair.loop.run_until([&] { return pair.at_b.messages.size() == 1; }));
  CHECK(at_late.messages.empty());
  late.set_job(ucx_pair::job, ucx_pair::secret());
  REQUIRE(pair.loop.run_until([&] { return at_late.messages.size() == 1; }));
  CHECK(late.counters().dropped_stale == 0);
}

TEST_CASE("ucx: a hello for an incarnation that ran here before is dropped (UX-3)") {
  ucx_pair pair;
  const auto former = pair.fresh(); // at the address where b is now
  REQUIRE(pair.a->connect(former, pair.b->local_address()));
  REQUIRE(pair.loop.run_until([&] { return ucx(pair.b).counters().dropped_stale == 1; }));
  CHECK(ucx(pair.b).idle());
  REQUIRE(pair.a->send(former, payload)); // queued: no handshake, so it never leaves (UX-1)
  pair.a->close(former);
  REQUIRE(pair.loop.run_until([&] { return ucx(pair.a).idle(); }));
  CHECK(pair.at_b.messages.empty());
}

TEST_CASE("ucx: a handshake that nobody answers ends at its deadline (UX-1)") {
  ucx_pair pair;
  asio_loop frozen; // never runs: a process that hangs
  auto silent = ucx_transport::open(frozen.context, frozen.clock, pair.fresh(), {});
  REQUIRE(silent);
  ucx_settings settings;
  settings.handshake_timeout = std::chrono::milliseconds{30};
  auto opened = ucx_transport::open(pair.loop.context, pair.loop.clock, pair.fresh(), settings);
  REQUIRE(opened);
  (*opened)->set_job(ucx_pair::job, ucx_pair::secret());
  recording_listener listener;
  (*opened)->set_listener(&listener);
  REQUIRE((*opened)->connect((*silent)->self(), (*silent)->local_address()));
  bool done = false;
  (*opened)->send_bulk((*silent)->self(), 1, payload, [&](const expected<void>& result) {
    CHECK_FALSE(result);
    done = true;
  });
  REQUIRE(pair.loop.run_until([&] { return listener.losses.size() == 1 && done; }));
  CHECK(listener.losses.front().cause.text.find("within 30ms") != std::string::npos);
  REQUIRE(pair.loop.run_until([&] { return (*opened)->idle(); }));
}

TEST_CASE("ucx: a goodbye that nobody answers ends at its deadline (UX-4)") {
  ucx_pair pair;
  asio_loop other;
  auto silent = ucx_transport::open(other.context, other.clock, pair.fresh(), {});
  REQUIRE(silent);
  auto& peer = **silent;
  peer.set_job(ucx_pair::job, ucx_pair::secret());
  recording_listener listener;
  peer.set_listener(&listener);
  REQUIRE(pair.a->connect(peer.self(), peer.local_address()));
  REQUIRE(pair.a->send(peer.self(), payload));
  REQUIRE(pair.loop.run_until([&] {
    other.context.poll();
    return listener.messages.size() == 1;
  }));
  pair.a->close(peer.self()); // from here on, the other loop stands still
  REQUIRE(pair.loop.run_until([&] { return ucx(pair.a).idle(); }));
}

// The receiver closes while pieces come in: it rejects them before its goodbye is on its way.
TEST_CASE("ucx: a goodbye in the middle of a transfer is told as one, whatever comes first (UX-7)") {
  const std::vector<std::byte> source(std::size_t{16} << 20U);
  std::uint64_t late = 0; // pieces
  for (int round = 0; round < 20; ++round) {
    ucx_pair pair;
    pair.connect();
    std::optional<expected<void>> outcome;
    pair.a->send_bulk(pair.b->self(), 1, source, [&](expected<void> result) { outcome = std::move(result); });
    REQUIRE(pair.loop.run_until([&] { return ucx(pair.b).counters().bytes_received > 0; }));
    if (round % 2 == 0) pair.b->close(pair.a->self());
    pair.at_b.then = [&](incarnation_id from, std::span<const std::byte>) { pair.b->close(from); };
    REQUIRE(pair.a->send(pair.b->self(), payload));
    REQUIRE(pair.loop.run_until([&] { return outcome && !pair.at_a.losses.empty(); }));
    CHECK(outcome->failure().code == errc::actor_stopped);
    CHECK(pair.at_a.losses.front().cause.code == errc::actor_stopped);
    late += ucx(pair.b).counters().dropped_stale;
  }
  CHECK(late > 0);
}

TEST_CASE("ucx: an endpoint that goes when it reads is not told that it may write (UX-9)") {
  REQUIRE(events_apart());
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  REQUIRE(::write(ends[1], "x", 1) == 1);
  struct endpoint {
    ucs_sys_event_set_t* set{nullptr};
    int socket{-1};
    bool goes{false};
    std::vector<int> told;
  } one{.socket = ends[0]};
  REQUIRE(ucs_event_set_create(&one.set) == UCS_OK);
  REQUIRE(ucs_event_set_add(one.set, one.socket, UCS_EVENT_SET_EVREAD | UCS_EVENT_SET_EVWRITE, &one) ==
          UCS_OK);
  const auto look = [&one] {
    unsigned count = 1;
    const auto tell = [](void* told, ucs_event_set_types_t what, void*) {
      auto& self = *static_cast<endpoint*>(told);
      self.told.push_back(what);
      if (self.goes) (void)ucs_event_set_del(self.set, self.socket);
    };
    CHECK(ucs_event_set_wait(one.set, &count, 0, tell, nullptr) == UCS_OK);
    CHECK(count == 1);
    return std::exchange(one.told, {});
  };
  CHECK(look() == std::vector<int>{UCS_EVENT_SET_EVREAD, UCS_EVENT_SET_EVWRITE});
  one.goes = true;
  CHECK(look() == std::vector<int>{UCS_EVENT_SET_EVREAD});
  ucs_event_set_cleanup(one.set);
  ::close(ends[0]);
  ::close(ends[1]);
}

enum class parting { closed, dropped, destroyed };

// False: the path had been opened before.
bool part_after(int handlers, parting how) {
  ucx_pair pair;
  pair.connect();
  REQUIRE(pair.b->connect(pair.a->self(), pair.a->local_address()));
  for (int ran = 0; ran < handlers && ucx(pair.a).counters().paths_opened == 0; ++ran)
    pair.loop.context.run_one();
  const bool early = ucx(pair.a).counters().paths_opened == 0;
  if (how == parting::closed) pair.a->close(pair.b->self());
  if (how == parting::dropped) pair.a->drop(pair.b->self());
  if (how == parting::destroyed) pair.destroy(pair.a);
  const bool may_reopen = how == parting::dropped; // b's hello makes another path
  REQUIRE(pair.loop.run_until(
      [&] { return !pair.at_b.losses.empty() || (may_reopen && ucx(pair.b).counters().paths_opened > 0); }));
  if (may_reopen) return early;
  if (how == parting::closed) CHECK(pair.at_b.losses.front().cause.code == errc::actor_stopped);
  REQUIRE(pair.loop.run_until([&] { return ucx(pair.b).idle() && (!pair.a || ucx(pair.a).idle()); }));
  return early;
}

TEST_CASE("ucx: a path can be closed, dropped and destroyed at any moment of its wire-up (UX-8)") {
  const auto how = GENERATE(parting::closed, parting::dropped, parting::destroyed);
  int handlers = 0;
  while (part_after(handlers, how))
    ++handlers;
  CHECK(handlers > 1);
}

// False: the path had been opened before. The deadline of the handshake helps nobody here.
bool open_again_after(int handlers, bool both) {
  ucx_pair pair;
  const auto end = [&](recording_listener& listener) {
    ucx_settings settings;
    settings.handshake_timeout = std::chrono::minutes{5};
    auto opened = ucx_transport::open(pair.loop.context, pair.loop.clock, pair.fresh(), settings);
    (*opened)->set_job(ucx_pair::job, ucx_pair::secret());
    (*opened)->set_listener(&listener);
    return std::move(*opened);
  };
  recording_listener at_a;
  recording_listener at_b;
  const auto a = end(at_a);
  const auto b = end(at_b);
  const auto connect = [](ucx_transport& from, ucx_transport& to) {
    REQUIRE(from.connect(to.self(), to.local_address()));
  };
  connect(*b, *a);
  if (both) connect(*a, *b);
  for (int ran = 0; ran < handlers && a->counters().paths_opened == 0; ++ran)
    pair.loop.context.run_one();
  const bool early = a->counters().paths_opened == 0;
  a->drop(b->self());
  connect(*a, *b);
  REQUIRE(a->send(b->self(), payload));
  REQUIRE(pair.loop.run_until([&] { return !at_b.messages.empty(); }));
  REQUIRE(b->send(a->self(), payload));
  REQUIRE(pair.loop.run_until([&] { return !at_a.messages.empty(); }));
  return early;
}

TEST_CASE("ucx: a path that was dropped at any moment of its handshake can be opened again at once (UX-2)") {
  const bool both = GENERATE(true, false); // or only the other one has wished for it
  int handlers = 0;
  while (open_again_after(handlers, both))
    ++handlers;
  CHECK(handlers > 1);
}

TEST_CASE("ucx: devices that are not there are refused in one line that names them") {
  asio_loop loop;
  ucx_settings settings;
  settings.devices = "nosuch0";
  const auto opened = ucx_transport::open(loop.context, loop.clock, incarnation_id{1, 1}, settings);
  REQUIRE_FALSE(opened);
  CHECK(opened.failure().code == errc::bad_argument);
  CHECK(opened.failure().text.find("'nosuch0'") != std::string::npos);
  CHECK(opened.failure().text.find('\n') == std::string::npos);
}

TEST_CASE("ucx: the steady state takes its buffers from the pool (SP-1)") {
  send_pool pool{64 * 1024};
  auto* first = pool.try_take(100);
  REQUIRE(first != nullptr);
  const auto allocated = pool.bytes_allocated();
  for (int i = 0; i < 100; ++i) {
    pool.give_back(first);
    first = pool.try_take(100);
  }
  CHECK(pool.bytes_allocated() == allocated);
  CHECK(pool.slots_out() == 1);
  std::vector<send_slot*> taken;
  while (auto* slot = pool.try_take(16 * 1024))
    taken.push_back(slot);
  CHECK(taken.size() == 3);                   // bounded
  CHECK(pool.try_take(100, true) != nullptr); // what the protocol owes goes out anyway
}

class counting_listener final : public transport_listener {
public:
  std::size_t messages{0};
  void on_message(incarnation_id, std::span<const std::byte>) override { ++messages; }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement&) override { return {}; }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
  void on_path_lost(incarnation_id, const error&) override {}
};

TEST_CASE("ucx: messages in the steady state allocate nothing (SP-1)") {
  ucx_pair pair;
  counting_listener counting;
  pair.b->set_listener(&counting);
  pair.connect();
  const auto pass = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto goal = counting.messages + 1;
      (void)pair.a->send(pair.b->self(), payload);
      while (counting.messages < goal)
        pair.loop.context.run_one();
    }
  };
  pass(100);
  const auto before = allocations_so_far();
  pass(1000);
  CHECK(allocations_so_far() - before == 0);
}

TEST_CASE("ucx: the memory of dead incarnations is bounded, the oldest goes first") {
  dead_incarnations dead{2};
  dead.add({1, 1});
  dead.add({2, 2});
  dead.add({1, 1});
  CHECK(dead.contains({1, 1}));
  dead.add({3, 3});
  CHECK_FALSE(dead.contains({1, 1}));
  CHECK(dead.contains({2, 2}));
  CHECK(dead.contains({3, 3}));
}

TEST_CASE("frames: whatever is not one of ours is told from a stale one (UX-3)") {
  const job_id job{1, 2};
  const incarnation_id from{3, 4};
  auto header = make_frame_header(frame_kind::message, job, from, 3, 5);
  const auto read = [&](frame_fault& fault) {
    return read_frame(std::as_bytes(std::span{&header, 1}), job, fault);
  };
  auto fault = frame_fault::none;
  REQUIRE(read(fault));
  CHECK(read(fault)->from == from);
  CHECK(read(fault)->sequence == 5);
  for (std::size_t bytes = 0; bytes < sizeof(header); ++bytes) {
    CHECK_FALSE(read_frame(std::as_bytes(std::span{&header, 1}).first(bytes), job, fault));
    CHECK(fault == frame_fault::malformed);
  }
  header.version = ucx_protocol_version + 1;
  CHECK_FALSE(read(fault));
  CHECK(fault == frame_fault::wrong_version);
  header = make_frame_header(frame_kind::message, {1, 3}, from, 3, 5);
  CHECK_FALSE(read(fault));
  CHECK(fault == frame_fault::wrong_job);
  header = make_frame_header(frame_kind::bulk_piece, job, from, 3, 5); // only in front of a piece
  CHECK_FALSE(read(fault));
  CHECK(fault == frame_fault::malformed);
  header = make_frame_header(static_cast<frame_kind>(99), job, from, 3, 5);
  CHECK_FALSE(read(fault));
  header = make_frame_header(frame_kind::message, job, {}, 3, 5);
  CHECK_FALSE(read(fault));
  CHECK_FALSE(read_frame(std::as_bytes(std::span{&header, 1}), job_id{}, fault)); // no job yet
}

} // namespace
} // namespace troupe::test
