#include <filesystem>
#include <string>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/collective_worlds.hpp"
#include "tests/unit/collective/reference.hpp"
#include "transports/shm/limits.hpp"
#include "transports/shm/segment.hpp"
#include "transports/shm/shm_collective.hpp"

namespace troupe {
namespace {

const collective_shape pair{generation_id{7}, 2, 8, 10'000};

std::size_t open_files() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"})
    count += entry.path().empty() ? 0U : 1U;
  return count;
}

errc refusal(shm_collective& ranks, const std::string& descriptor, const collective_shape& shape,
             std::uint32_t rank = 0) {
  const auto connected = ranks.connect(descriptor, shape, rank_id{rank});
  REQUIRE_FALSE(connected);
  CHECK_FALSE(connected.failure().text.empty());
  return connected.failure().code;
}

TEST_CASE("shm segment: the layout keeps slots apart, on cache lines, inside the segment (SG-2)") {
  for (const std::uint32_t world : {1U, 2U, 3U, 8U, 1024U})
    for (const std::size_t elements : {1U, 15U, 16U, 17U, 4096U, 4097U, 1'000'000U}) {
      const auto layout = layout_of({generation_id{1}, world, 8, elements});
      REQUIRE(layout);
      CHECK(layout->stride >= elements * sizeof(float));
      CHECK(layout->stride % 64 == 0);
      CHECK(layout->slots_at % 64 == 0);
      CHECK(layout->slots_at >= sizeof(segment_header) + world * sizeof(arrival_line));
      CHECK(layout->result_at == layout->slots_at + layout->slots * layout->stride);
      const auto results = layout->exchanged ? 2 * layout->slots : 1;
      CHECK(layout->bytes >= layout->result_at + results * layout->stride);
    }
}

TEST_CASE("shm segment: an impossible shape is refused") {
  CHECK(layout_of({generation_id{1}, 0, 8, 1}).failure().code == errc::bad_argument);
  CHECK(layout_of({generation_id{1}, 1025, 8, 1}).failure().code == errc::bad_argument);
  CHECK(layout_of({generation_id{1}, 1, 0, 1}).failure().code == errc::bad_argument);
  CHECK(layout_of({generation_id{1}, 1, 4097, 1}).failure().code == errc::bad_argument);
  CHECK(layout_of({generation_id{1}, 1, 8, 0}).failure().code == errc::bad_argument);
  CHECK(layout_of({generation_id{1}, 1, 8, ~std::size_t{0}}).failure().code == errc::bad_argument);
  using cuts = std::vector<std::uint32_t>;
  for (const auto& wrong : {cuts{0, 8}, cuts{0, 9, 9}, cuts{0, 5, 4}, cuts{4, 4, 4}, cuts{0, 4, 9}}) {
    collective_shape shape{generation_id{1}, 2, 8, 1};
    shape.cuts = wrong;
    CHECK(layout_of(shape).failure().code == errc::bad_argument);
  }
  CHECK(layout_of({generation_id{1}, 1000, 4096, std::size_t{1} << 31}).failure().code == errc::bad_argument);
}

TEST_CASE("shm collective: a member of another shape is refused (SG-1)") {
  shm_collective ranks;
  const auto descriptor = ranks.prepare(pair).value();
  auto other = pair;
  other.generation = generation_id{8};
  CHECK(refusal(ranks, descriptor, other) == errc::bad_argument);
  other = pair;
  other.world = 3;
  CHECK(refusal(ranks, descriptor, other) == errc::bad_argument);
  other = pair;
  other.elements = 9999;
  CHECK(refusal(ranks, descriptor, other) == errc::bad_argument);
  other = pair;
  other.group_bytes = 4096;
  CHECK(refusal(ranks, descriptor, other) == errc::bad_argument);
  other = pair;
  other.shards = 16; // as many slots and bytes: only the header knows
  REQUIRE(layout_of(other)->bytes == layout_of(pair)->bytes);
  CHECK(refusal(ranks, descriptor, other) == errc::bad_argument);
  other = pair;
  other.cuts = {0, 3, 8};
  REQUIRE(layout_of(other)->bytes >= layout_of(pair)->bytes);
  CHECK(refusal(ranks, descriptor, other) == errc::bad_argument);
  CHECK(refusal(ranks, descriptor, pair, 2) == errc::bad_argument);
  CHECK(ranks.connect(descriptor, pair, rank_id{1}));
}

TEST_CASE("shm collective: a rank connects once") {
  shm_collective ranks;
  const auto descriptor = ranks.prepare(pair).value();
  const auto first = ranks.connect(descriptor, pair, rank_id{0});
  REQUIRE(first);
  CHECK(refusal(ranks, descriptor, pair) == errc::bad_argument);
}

TEST_CASE("shm collective: a text that is no descriptor is refused") {
  shm_collective ranks;
  for (const std::string text :
       {"", "shm:", "loopback:1", "shm:/etc/passwd:1:1:1", "shm:/proc/1/fd/../../etc:1:1:1",
        "shm:/proc/1/fd/3:40:1", "shm:/proc/1/fd/3:40:1:2x", "shm:/proc/-1/fd/3:40:1:2",
        "shm:/proc/99999999999999999999999/fd/3:40:1:2"})
    CHECK(refusal(ranks, text, pair) == errc::bad_argument);
  CHECK(refusal(ranks, std::string(limits::shm_descriptor_bytes_max + 1, '1'), pair) == errc::bad_argument);
}

TEST_CASE("shm collective: another file under the same number is not touched (SG-1)") {
  shm_collective ranks;
  const auto descriptor = ranks.prepare(pair).value();
  const auto number_at = descriptor.find("/fd/") + 4;
  const auto number_end = descriptor.find(':', number_at);
  for (const std::string number : {"0", "1", "2", "987654"}) {
    auto moved = descriptor;
    moved.replace(number_at, number_end - number_at, number);
    CHECK(refusal(ranks, moved, pair) == errc::aborted);
  }
}

TEST_CASE(
    "shm collective: the next prepare ends the generation before it and keeps no file open (CO-3, SM-1)") {
  shm_collective ranks;
  auto shape = pair;
  const auto old_descriptor = ranks.prepare(shape).value();
  const auto old_member = ranks.connect(old_descriptor, shape, rank_id{0});
  REQUIRE(old_member);
  const auto files = open_files();
  for (std::uint64_t generation = 8; generation < 20; ++generation) {
    shape.generation = generation_id{generation};
    REQUIRE(ranks.prepare(shape));
    CHECK(open_files() == files);
  }
  CHECK(refusal(ranks, old_descriptor, pair, 1) == errc::aborted);
  // The old member keeps its memory, and its wait for a rank that never came ends.
  (*old_member)->contribution(0)[0] = 1.0F;
  const auto sum = worlds::reduce(**old_member);
  REQUIRE_FALSE(sum);
  CHECK(sum.failure().code == errc::aborted);
}

TEST_CASE("shm collective: the director sees who is behind, and can end the generation (CO-2)") {
  shm_collective ranks;
  CHECK(ranks.arrivals().empty());
  const auto descriptor = ranks.prepare(pair).value();
  const auto member = ranks.connect(descriptor, pair, rank_id{1});
  REQUIRE(member);
  errc outcome{};
  std::thread waiting{[&] { outcome = worlds::reduce(**member).failure().code; }};
  CHECK(worlds::eventually([&] { return ranks.arrivals() == std::vector<std::uint64_t>{0, 1}; }));
  ranks.end_generation();
  waiting.join();
  CHECK(outcome == errc::aborted);
  CHECK(refusal(ranks, descriptor, pair) == errc::aborted);
}

TEST_CASE("shm collective: an impossible count of arrivals is reported, not trusted (ME-1)") {
  shm_collective director;
  auto opened = segment::open(director.prepare(pair).value(), pair);
  REQUIRE(opened);
  (*opened)->header().words.arrived.store(1'000'000);
  meeting meeting{(*opened)->header().words, (*opened)->lines(), 0, {}};
  CHECK(meeting.meet() == meeting::outcome::corrupt);
}

TEST_CASE("shm collective: a lone member's contribution is the sum, without a copy") {
  shm_collective ranks;
  const collective_shape alone{generation_id{1}, 1, 8, 100'000};
  auto member = ranks.connect(ranks.prepare(alone).value(), alone, rank_id{0});
  REQUIRE(member);
  reference::contribute(**member, alone, 0, reference::shards_at(3, 8, 100'000));
  const auto sum = worlds::reduce(**member);
  REQUIRE(sum);
  CHECK(sum->sum.data() == (*member)->contribution(0).data());
  CHECK(reference::same_bits(sum->sum, reference::sum_at(3, 8, 100'000)));
}

} // namespace
} // namespace troupe
