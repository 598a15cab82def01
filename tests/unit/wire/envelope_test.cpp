#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/wire/codec.hpp"
#include "runtime/wire/envelope.hpp"
#include "tests/unit/wire/allocation_counter.hpp"
#include "tests/unit/wire/hex.hpp"

namespace {

using namespace troupe;

struct buffer {
  alignas(8) std::array<std::byte, 1024> bytes{};
  std::size_t used{0};
  [[nodiscard]] std::span<const std::byte> content() const { return std::span{bytes}.first(used); }
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span{text.data(), text.size()});
}

envelope sample() {
  envelope what;
  what.job = {1, 2};
  what.sender = {3, 4};
  what.generation = generation_id{5};
  what.kind = envelope_kind::request;
  what.status = exit_status::of(errc::path_lost);
  what.target = 6;
  what.source = 7;
  what.correlation = 8;
  what.type = 9;
  what.name = "prefetcher";
  what.text = "why";
  what.body = bytes_of("0123456789");
  return what;
}

buffer encoded(const envelope& what) {
  buffer result;
  const auto used = encode(what, result.bytes);
  REQUIRE(used);
  result.used = *used;
  return result;
}

void check_equal(const envelope& a, const envelope& b) {
  CHECK(a.job == b.job);
  CHECK(a.sender == b.sender);
  CHECK(a.generation == b.generation);
  CHECK(a.kind == b.kind);
  CHECK(a.status == b.status);
  CHECK(a.target == b.target);
  CHECK(a.source == b.source);
  CHECK(a.correlation == b.correlation);
  CHECK(a.type == b.type);
  CHECK(a.name == b.name);
  CHECK(a.text == b.text);
  CHECK(std::ranges::equal(a.body, b.body));
}

} // namespace

TEST_CASE("envelope: what is decoded is what was encoded (EN-1)", "[wire]") {
  const auto full = encoded(sample());
  const auto back = decode(full.content());
  REQUIRE(back);
  check_equal(*back, sample());
  CHECK(reinterpret_cast<std::uintptr_t>(back->body.data()) % 8 == 0);

  envelope bare;
  bare.sender = {0, 1};
  const auto small = encoded(bare);
  const auto back_bare = decode(small.content());
  REQUIRE(back_bare);
  check_equal(*back_bare, bare);
}

TEST_CASE("envelope: the bytes on the wire do not change by accident (golden, 0.1.0)", "[wire]") {
  const auto full = encoded(sample());
  CHECK(hex_of(full.content()) == "0000000013000000" // segment table
                                  "000000000a000300" // root pointer: 10 data words, 3 pointers
                                  "0100000000000000" // job, high
                                  "0200000000000000" // job, low
                                  "0300000000000000" // sender, high
                                  "0400000000000000" // sender, low
                                  "0500000000000000" // generation
                                  "0600000000000000" // target
                                  "0700000000000000" // source
                                  "0800000000000000" // correlation
                                  "0900000000000000" // type
                                  "0200190000000000" // kind, status
                                  "090000005a000000" // name pointer
                                  "0d00000022000000" // text pointer
                                  "0d00000052000000" // body pointer
                                  "7072656665746368" // name
                                  "6572000000000000"
                                  "7768790000000000" // text
                                  "3031323334353637" // body
                                  "3839000000000000");
}

TEST_CASE("envelope: limits are kept on both sides (EN-3)", "[wire]") {
  buffer small;
  auto what = sample();
  const std::string big(small.bytes.size(), 'x');
  what.body = bytes_of(big);
  CHECK(encode(what, small.bytes).failure().code == errc::too_large);

  what = sample();
  const std::string name(limits::name_bytes_max + 1, 'n');
  what.name = name;
  CHECK(encode(what, small.bytes).failure().code == errc::bad_argument);

  std::vector<std::uint64_t> huge(limits::envelope_bytes_max / 8 + 64);
  const auto room = std::as_writable_bytes(std::span{huge});
  const std::string body(limits::envelope_bytes_max, 'b');
  what = sample();
  what.body = bytes_of(body);
  CHECK(encode(what, room).failure().code == errc::too_large);
  what.body = what.body.first(limits::envelope_bytes_max - 256);
  const auto used = encode(what, room);
  REQUIRE(used);
  CHECK(*used <= encoded_bytes(what));
  CHECK(decode(std::span{room}.first(*used)));
}

TEST_CASE("envelope: bad fields are corrupt, not accepted", "[wire]") {
  auto what = sample();
  what.kind = static_cast<envelope_kind>(99);
  CHECK(decode(encoded(what).content()).failure().code == errc::corrupt);
  what = sample();
  what.sender = {};
  CHECK(decode(encoded(what).content()).failure().code == errc::corrupt);
  what = sample();
  what.status = 7;
  CHECK(decode(encoded(what).content()).failure().code == errc::corrupt);
}

TEST_CASE("envelope: cut, extended and misaligned bytes are corrupt (EN-2)", "[wire]") {
  const auto full = encoded(sample());
  for (std::size_t cut = 0; cut < full.used; ++cut)
    CHECK(decode(full.content().first(cut)).failure().code == errc::corrupt);
  CHECK(decode(std::span{full.bytes}.first(full.used + 8)).failure().code == errc::corrupt);
  buffer shifted;
  std::memcpy(shifted.bytes.data() + 4, full.bytes.data(), full.used);
  CHECK(decode(std::span{shifted.bytes}.subspan(4, full.used)).failure().code == errc::corrupt);
}

TEST_CASE("envelope: flipped bits and random bytes never get out of the span (EN-2)", "[wire]") {
  const auto full = encoded(sample());
  const counter_rng random{1, stream_of("envelope fuzz")};
  std::uint64_t draw = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto damaged = full;
    const auto flips = 1 + random.bits(draw++) % 8;
    for (std::uint64_t flip = 0; flip < flips; ++flip) {
      const auto bit = random.bits(draw++) % (damaged.used * 8);
      damaged.bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    const auto result = decode(damaged.content());
    if (!result) {
      CHECK(result.failure().code == errc::corrupt);
      ++refused;
      continue;
    }
    const auto* begin = reinterpret_cast<const char*>(damaged.bytes.data());
    const auto* end = begin + damaged.used;
    if (!result->name.empty()) CHECK((result->name.data() >= begin && result->name.end() <= end));
    if (!result->text.empty()) CHECK((result->text.data() >= begin && result->text.end() <= end));
  }
  CHECK(refused > 0);
  for (int round = 0; round < 5000; ++round) {
    buffer noise;
    noise.used = 8 + random.bits(draw++) % 64 * 8;
    for (std::size_t i = 0; i < noise.used; ++i)
      noise.bytes[i] = static_cast<std::byte>(random.bits(draw++));
    const std::array<std::uint32_t, 2> table{0, static_cast<std::uint32_t>(noise.used / 8 - 1)};
    if (round % 2 == 0) std::memcpy(noise.bytes.data(), table.data(), 8); // gets past the first check
    const auto result = decode(noise.content());
    if (!result) CHECK(result.failure().code == errc::corrupt);
  }
}

TEST_CASE("envelope: encoding and decoding allocate nothing", "[wire]") {
  buffer room;
  const auto what = sample();
  const auto before = allocations_so_far();
  bool good = true;
  for (int i = 0; i < 100; ++i) {
    const auto used = encode(what, room.bytes);
    good = good && used && decode(std::span{room.bytes}.first(*used));
  }
  const auto after = allocations_so_far();
  CHECK(good);
  CHECK(after == before);
}

TEST_CASE("exit status: every error code has one", "[wire]") {
  CHECK(exit_status::to_errc(exit_status::of(errc::bad_argument)) == errc::bad_argument);
  CHECK(exit_status::to_errc(exit_status::of(errc::internal)) == errc::internal);
  CHECK(exit_status::to_errc(exit_status::killed) == errc::actor_stopped);
}
