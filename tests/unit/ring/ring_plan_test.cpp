#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "transports/ring/ring_frame.hpp"
#include "transports/ring/ring_plan.hpp"

namespace troupe {
namespace {

collective_shape of(std::uint32_t world, std::uint32_t shards, std::size_t bytes) {
  return {generation_id{1}, world, shards, bytes / sizeof(float)};
}

TEST_CASE("ring plan: slices and pieces cover the elements, cut at cache lines (RP-2)") {
  for (const std::size_t elements : {1U, 15U, 16U, 17U, 1000U, 4096U, 99'999U})
    for (std::uint32_t world = 1; world <= 9; ++world)
      for (const std::size_t piece : {16U, 1024U}) {
        std::size_t covered = 0;
        for (std::uint32_t rank = 0; rank < world; ++rank) {
          const auto slice = slice_of(elements, world, rank);
          CHECK(slice.begin == covered);
          CHECK((slice.begin % 16 == 0 || slice.begin == elements));
          for (std::size_t i = 0; i < pieces_of(slice, piece); ++i) {
            const auto cut = piece_of(slice, piece, i);
            CHECK(cut.begin == covered);
            CHECK((cut.size() > 0 && cut.size() <= piece));
            covered = cut.end;
          }
          CHECK(covered == slice.end);
        }
        CHECK(covered == elements);
      }
}

TEST_CASE("ring plan: doubling needs a balanced tree over the ranks (RP-3)") {
  const auto fits = [](std::uint32_t shards, std::uint32_t world) {
    return doubles(of(world, shards, 4096));
  };
  CHECK(fits(8, 2));
  CHECK(fits(8, 8));
  CHECK(fits(64, 16));
  CHECK(fits(7, 2)); // 4 + 3
  CHECK_FALSE(fits(8, 1));
  CHECK_FALSE(fits(8, 3));
  CHECK_FALSE(fits(8, 16));
  CHECK_FALSE(fits(12, 4)); // 12 splits into 8 + 4
  auto shape = of(4, 12, 4096);
  shape.cuts = {0, 4, 8, 10, 12}; // nodes, but ((a + b) + (c + d)) is another tree: (8) + (4)
  CHECK(doubles(shape));
  shape.cuts = {0, 8, 10, 11, 12};
  CHECK_FALSE(doubles(shape));
}

TEST_CASE("ring plan: the way follows from size and count") {
  CHECK(choose_way(of(1, 8, 4 << 10)) == ring_way::alone);
  CHECK(choose_way(of(2, 8, 4 << 10)) == ring_way::exchange);
  CHECK(choose_way(of(3, 8, 4 << 10)) == ring_way::exchange);
  CHECK(choose_way(of(3, 8, 4 << 20)) == ring_way::slices);
  CHECK(choose_way(of(2, 8, 64 << 20)) == ring_way::slices);
  CHECK(choose_way(of(16, 16, 4 << 10)) == ring_way::doubling);
  CHECK(choose_way(of(64, 64, 32 << 10)) == ring_way::doubling);
  CHECK(choose_way(of(15, 16, 4 << 10)) == ring_way::exchange);
  CHECK(choose_way(of(16, 16, 4 << 20)) == ring_way::slices);
}

TEST_CASE("ring plan: what counts are the bytes that travel") {
  auto shape = of(2, 2, 96 << 10); // a message takes 64 KiB
  CHECK_FALSE(possible(ring_way::exchange, shape));
  shape.wire = element_type::float16;
  shape.wire_elements = shape.elements;
  CHECK(possible(ring_way::exchange, shape));
}

TEST_CASE("ring plan: lists of entries are short, so they go as messages where all values would not") {
  auto shape = of(2, 8, 814'208);
  shape.wire_elements = shape.elements - 16;
  CHECK(choose_way(shape) == ring_way::slices);
  shape.kept = 1000;
  CHECK(choose_way(shape) == ring_way::exchange);
  shape.kept = 20'000; // of four shards together they may not fit a message
  CHECK(choose_way(shape) == ring_way::slices);
  shape = of(2, 8, 64 << 20);
  shape.wire_elements = shape.elements - 16;
  shape.kept = 1000; // unpacking and adding up so many would hold up the event loop
  CHECK(choose_way(shape) == ring_way::slices);
}

TEST_CASE("ring plan: what is chosen is possible, and a larger sum never goes back to a smaller one's way") {
  for (std::uint32_t world = 1; world <= 64; ++world)
    for (const std::uint32_t shards : {1U, 8U, 12U, 64U, 100U}) {
      bool sliced = false;
      for (std::size_t bytes = 4; bytes <= std::size_t{1} << 28U; bytes *= 4) {
        const auto way = choose_way(of(world, shards, bytes));
        CHECK(possible(way, of(world, shards, bytes)));
        CHECK((!sliced || way == ring_way::slices));
        sliced = way == ring_way::slices;
      }
    }
}

TEST_CASE("ring plan: every way has a name that is read back") {
  for (const auto way : {ring_way::alone, ring_way::exchange, ring_way::doubling, ring_way::slices})
    CHECK(parse_ring_way(to_string(way)) == way);
  CHECK_FALSE(parse_ring_way("sideways").has_value());
}

TEST_CASE("ring frames: what was encoded is decoded, and nothing else is accepted (RF-1)") {
  std::vector<std::byte> bytes(ring_header_bytes + 8, std::byte{1});
  encode_header({.what = ring_word::part, .index = 7, .generation = 1ULL << 40U, .arrived = 9}, bytes);
  const auto read = decode_ring_frame(bytes);
  REQUIRE(read.has_value());
  CHECK((read->what == ring_word::part && read->index == 7));
  CHECK((read->generation == 1ULL << 40U && read->arrived == 9 && read->values.size() == 8));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(decode_ring_frame(std::span{bytes}.first(size)).has_value() == (size >= 24));
  bytes[20] = std::byte{0};
  CHECK_FALSE(decode_ring_frame(bytes).has_value());
  bytes[20] = std::byte{7};
  CHECK_FALSE(decode_ring_frame(bytes).has_value());
  bytes[20] = std::byte{5}; // a block: bytes of any type
  CHECK(decode_ring_frame(std::span{bytes}.first(27)).has_value());
}

TEST_CASE("ring frames: a transfer's number says all of it, below the bits of the channel (RF-1)") {
  for (const auto& what : {ring_transfer{0, 0, false, 0}, ring_transfer{5, 17, true, 12345},
                           ring_transfer{ring_transfer::generation_mask, ring_transfer::sum_mask, true,
                                         static_cast<std::uint32_t>(ring_transfer::place_mask), true}}) {
    CHECK(encode(what) >> 56U == 0);
    CHECK(decode_ring_transfer(encode(what)) == what);
  }
  CHECK_FALSE(decode_ring_transfer(1ULL << 56U).has_value());
}

} // namespace
} // namespace troupe
