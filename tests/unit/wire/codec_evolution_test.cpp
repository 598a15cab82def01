#include <array>
#include <cstring>

#include <catch2/catch_test_macros.hpp>

#include "runtime/wire/codec.hpp"
#include "tests/unit/wire/allocation_counter.hpp"
#include "tests/unit/wire/hex.hpp"

namespace {

using namespace troupe;

// One message at two versions. The later one has appended a field to the inner struct, and two to the outer.
struct part_before {
  std::uint16_t rank{0};
  bool operator==(const part_before&) const = default;
  void fields(auto& archive) { archive(rank); }
};
struct part_later {
  std::uint16_t rank{0};
  std::string note{"none"};
  bool operator==(const part_later&) const = default;
  void fields(auto& archive) { archive(rank, note); }
};
struct message_before {
  static constexpr std::string_view wire_name = "test.evolving";
  std::uint32_t number{0};
  std::vector<part_before> parts;
  std::optional<part_before> chief;
  void fields(auto& archive) { archive(number, parts, chief); }
};
struct message_later {
  static constexpr std::string_view wire_name = "test.evolving";
  std::uint32_t number{0};
  std::vector<part_later> parts;
  std::optional<part_later> chief;
  std::uint64_t budget{7};
  std::vector<std::string> tags{"default"};
  void fields(auto& archive) {
    archive(number, parts, chief);
    archive(budget, tags);
  }
};

struct beat {
  static constexpr std::string_view wire_name = "test.beat";
  part_before part;
  std::uint64_t step{0};
  void fields(auto& archive) { archive(part, step); }
};

// A message that holds messages: what a hostile body could nest.
struct nested {
  static constexpr std::string_view wire_name = "test.nested";
  std::vector<nested> inner;
  void fields(auto& archive) { archive(inner); }
};

message_before before() {
  return {.number = 5, .parts = {{1}, {2}}, .chief = part_before{3}};
}
message_later later() {
  return {.number = 5,
          .parts = {{1, "one"}, {2, "two"}},
          .chief = part_later{3, "three"},
          .budget = 9,
          .tags = {"a", "b"}};
}

template <class T>
std::vector<std::byte> encoded(const T& value) {
  std::array<std::byte, 512> room{};
  const auto bytes = encode_body(value, room);
  REQUIRE(bytes);
  return {bytes->begin(), bytes->end()};
}

// Of the struct at the front: as if it ended `length` bytes behind its length.
std::vector<std::byte> ending_at(std::vector<std::byte> bytes, std::uint32_t length) {
  bytes.resize(sizeof length + length);
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes;
}

// What a build of 0.1.0 wrote.
constexpr std::string_view golden_before = "1b000000" // 27 bytes follow
                                           "05000000" // number
                                           "02000000" // parts
                                           "020000000100"
                                           "020000000200"
                                           "01020000000300"; // chief: there, its length, its rank
constexpr std::string_view golden_later = "48000000"
                                          "05000000"
                                          "02000000"
                                          "090000000100030000006f6e65"       // 1, "one"
                                          "0900000002000300000074776f"       // 2, "two"
                                          "010b0000000300050000007468726565" // 3, "three"
                                          "0900000000000000"                 // budget
                                          "0200000001000000610100000062";    // tags

} // namespace

TEST_CASE("codec: a message of the previous version reads, what it lacks is at its default (CD-1)",
          "[wire]") {
  const auto read = decode_body<message_later>(encoded(before()));
  REQUIRE(read);
  CHECK(read->number == 5);
  CHECK(read->parts == std::vector<part_later>{{1, "none"}, {2, "none"}});
  CHECK(read->chief == part_later{3, "none"});
  CHECK(read->budget == 7);
  CHECK(read->tags == std::vector<std::string>{"default"});
}

TEST_CASE("codec: a message of the next version reads, what is not known is skipped (CD-1)", "[wire]") {
  const auto read = decode_body<message_before>(encoded(later()));
  REQUIRE(read);
  CHECK(read->number == 5);
  CHECK(read->parts == std::vector<part_before>{{1}, {2}});
  CHECK(read->chief == part_before{3});
}

TEST_CASE("codec: the bytes of both versions do not change by accident (golden, 0.1.0)", "[wire]") {
  CHECK(hex_of(encoded(before())) == golden_before);
  CHECK(hex_of(encoded(later())) == golden_later);
  CHECK(decode_body<message_later>(bytes_of_hex(golden_before)));
  CHECK(decode_body<message_before>(bytes_of_hex(golden_later)));
}

TEST_CASE("codec: a struct may end between its fields and nowhere else (CD-2)", "[wire]") {
  const auto good = encoded(later());
  std::vector<std::uint32_t> accepted;
  for (std::uint32_t length = 0; length <= good.size() - 4; ++length)
    if (const auto read = decode_body<message_later>(ending_at(good, length))) accepted.push_back(length);
  // In front of: number, parts, chief, budget, tags; and the end.
  CHECK(accepted == std::vector<std::uint32_t>{0, 4, 34, 50, 58, 72});
  CHECK(decode_body<message_later>({}).failure().code == errc::corrupt); // not even an empty struct
}

TEST_CASE("codec: a struct's fields are read inside that struct only (CD-2)", "[wire]") {
  auto bytes = encoded(before());
  bytes[12] = std::byte{1}; // the first part claims one byte: half of its rank
  CHECK(decode_body<message_before>(bytes).failure().code == errc::corrupt);
  bytes[12] = std::byte{200}; // more than there is
  CHECK(decode_body<message_before>(bytes).failure().code == errc::corrupt);
}

TEST_CASE("codec: nesting has a limit, on both sides (CD-2)", "[wire]") {
  nested tower;
  for (unsigned level = 1; level < wire_nesting_max; ++level) {
    nested next;
    next.inner.push_back(std::move(tower));
    tower = std::move(next);
  }
  auto highest = encoded(tower);
  CHECK(decode_body<nested>(highest));
  nested above;
  above.inner.push_back(std::move(tower));
  std::array<std::byte, 512> room{};
  CHECK(encode_body(above, room).failure().code == errc::too_large);
  // The same by hand: a length, and a list of one, around what was just high enough.
  const auto inside = static_cast<std::uint32_t>(highest.size() + 4);
  const std::array<std::uint32_t, 2> front{inside, 1};
  const auto opening = std::as_bytes(std::span{front});
  highest.insert(highest.begin(), opening.begin(), opening.end());
  CHECK(decode_body<nested>(highest).failure().code == errc::corrupt);
}

TEST_CASE("codec: a struct's length costs no allocation", "[wire]") {
  std::array<std::byte, 64> room{};
  bool good = true;
  const auto so_far = allocations_so_far();
  for (int i = 0; i < 100; ++i) {
    const auto bytes = encode_body(beat{{3}, 4}, room);
    good = good && bytes && decode_body<beat>(*bytes).has_value();
  }
  const auto after = allocations_so_far();
  CHECK(good);
  CHECK(after == so_far);
}
