#include <bit>
#include <limits>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/time.hpp"
#include "runtime/wire/codec.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

enum class phase : std::uint8_t { idle, running, held };

struct inner {
  std::uint32_t rank{0};
  std::optional<std::string> note;
  void fields(auto& archive) { archive(rank, note); }
  bool operator==(const inner&) const = default;
};

struct everything {
  static constexpr std::string_view wire_name = "test.everything";
  bool flag{false};
  phase state{phase::idle};
  float loss{0};
  double time{0};
  std::string text;
  generation_id generation;
  incarnation_id incarnation;
  duration span{0};
  time_point when;
  error cause;
  std::vector<inner> members;
  std::vector<std::uint64_t> numbers;
  std::vector<std::byte> blob;
  std::array<std::int16_t, 3> fixed{};
  std::pair<std::string, bool> both;
  void fields(auto& archive) {
    archive(flag, state, loss, time, text, generation, incarnation, span, when, cause, members, numbers, blob,
            fixed, both);
  }
};

everything sample() {
  everything e;
  e.flag = true;
  e.state = phase::held;
  e.loss = std::bit_cast<float>(0x7fc12345U); // a NaN with a payload
  e.time = -0.0;
  e.text = "caf\xc3\xa9";
  e.generation = generation_id{7};
  e.incarnation = {1, 2};
  e.span = 250ms;
  e.when = time_from_ns(99);
  e.cause = {errc::bad_data, "label 12"};
  e.members = {{1, "one"}, {2, std::nullopt}};
  e.numbers = {1, 2, std::numeric_limits<std::uint64_t>::max()};
  e.blob = {std::byte{1}, std::byte{2}};
  e.fixed = {-1, 0, 1};
  e.both = {"both", true};
  return e;
}

} // namespace

template <>
inline constexpr std::optional<phase> troupe::wire_last<phase>{phase::held};

TEST_CASE("codec: what is decoded is what was encoded, NaN included (CD-1)", "[wire]") {
  std::array<std::byte, 512> room{};
  const auto bytes = encode_body(sample(), room);
  REQUIRE(bytes);
  const auto back = decode_body<everything>(*bytes);
  REQUIRE(back);
  const auto want = sample();
  CHECK(back->flag == want.flag);
  CHECK(back->state == want.state);
  CHECK(std::bit_cast<std::uint32_t>(back->loss) == 0x7fc12345U);
  CHECK(std::bit_cast<std::uint64_t>(back->time) == std::bit_cast<std::uint64_t>(-0.0));
  CHECK(back->text == want.text);
  CHECK(back->generation == want.generation);
  CHECK(back->incarnation == want.incarnation);
  CHECK(back->span == want.span);
  CHECK(back->when == want.when);
  CHECK(back->cause.code == want.cause.code);
  CHECK(back->cause.text == want.cause.text);
  CHECK(back->members == want.members);
  CHECK(back->numbers == want.numbers);
  CHECK(back->blob == want.blob);
  CHECK(back->fixed == want.fixed);
  CHECK(back->both == want.both);
}

TEST_CASE("codec: a message that does not fit is too large", "[wire]") {
  std::array<std::byte, 64> room{};
  CHECK(encode_body(sample(), room).failure().code == errc::too_large);
}

TEST_CASE("codec: cut, extended and damaged bodies are refused or decoded, never more (CD-2)", "[wire]") {
  std::array<std::byte, 512> room{};
  const auto encoded = encode_body(sample(), room);
  REQUIRE(encoded);
  const std::vector<std::byte> good(encoded->begin(), encoded->end());
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    CHECK(decode_body<everything>(std::span{good}.first(cut)).failure().code == errc::corrupt);
  auto longer = good;
  longer.push_back(std::byte{0});
  CHECK(decode_body<everything>(longer).failure().code == errc::corrupt);
  auto bad_flag = good; // behind the length of the struct
  bad_flag[4] = std::byte{2};
  CHECK(decode_body<everything>(bad_flag).failure().code == errc::corrupt);
  auto bad_enum = good;
  bad_enum[5] = std::byte{3};
  CHECK(decode_body<everything>(bad_enum).failure().code == errc::corrupt);

  const counter_rng random{2, stream_of("codec fuzz")};
  std::uint64_t draw = 0;
  for (int round = 0; round < 20000; ++round) {
    auto damaged = good;
    const auto bit = random.bits(draw++) % (damaged.size() * 8);
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto result = decode_body<everything>(damaged);
    if (!result) CHECK(result.failure().code == errc::corrupt);
  }
}

TEST_CASE("codec: a type's number is a pure function of its name", "[wire]") {
  CHECK(wire_type_of("test.everything") == 0xf263b008e0647fecULL);
}
