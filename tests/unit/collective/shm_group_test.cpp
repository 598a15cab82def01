// Rank groups over shared memory: what other processes may have written there, and the layout.
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/limits.hpp"
#include "transports/shm/shm_collective.hpp"
#include "transports/shm/shm_group.hpp"

namespace troupe {
namespace {

const collective_shape pair{generation_id{7}, 2, 8, 100, 4096};

// Rank `real` is a member, the other one is whatever the test makes of it.
struct two_members {
  explicit two_members(std::uint32_t real)
      : fake_rank{1 - real} {
    auto opened = segment::open(director.prepare(pair).value(), pair);
    REQUIRE(opened);
    memory = std::move(*opened);
    member = std::move(
        shm_group::make(memory, {.generation = pair.generation, .group = 0, .world = 2, .rank = real})
            .value());
    lines = {reinterpret_cast<arrival_line*>(memory->bytes_at(memory->layout().groups_at)), 2};
  }
  group_line& fake_line() {
    const auto lines_at = memory->layout().groups_at + 2 * sizeof(arrival_line);
    return *reinterpret_cast<group_line*>(memory->bytes_at(lines_at + fake_rank * sizeof(group_line)));
  }
  // The other one shows `shown`, and meets.
  std::thread fake(const common_call& shown) {
    fake_line().common[0] = shown;
    return std::thread{[this] {
      meeting other{memory->words_of(0).together, lines, fake_rank, {}};
      (void)other.meet();
    }};
  }
  expected<void> run(const group_operation& what) {
    std::optional<expected<void>> answer;
    member->start(what, [&](expected<void> result) { answer = std::move(result); });
    return *answer;
  }

  std::uint32_t fake_rank;
  shm_collective director;
  std::shared_ptr<segment> memory;
  std::unique_ptr<rank_group> member;
  std::span<arrival_line> lines;
};

TEST_CASE("shm group: a call that names nothing is told, not trusted (SR-2)") {
  two_members both{0};
  auto other = both.fake({{.elements = ~0ULL, .ranks = 1, .peer = 77, .call = 250, .type = 99, .op = 98}, 0});
  const auto result = both.run({.call = group_call::barrier});
  other.join();
  REQUIRE_FALSE(result);
  CHECK(result.failure().code == errc::bad_argument);
  CHECK(result.failure().text.find("rank 1 calls kind 250") != std::string::npos);
  CHECK(both.run({.call = group_call::barrier}).failure().code == errc::aborted);
}

TEST_CASE("shm group: a group number that cannot be makes no group (SG-2, SR-2)") {
  const std::vector<std::uint32_t> ranks{0, 1};
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{limits::rank_groups_max}, ~std::uint64_t{0}}) {
    two_members both{1};
    auto other = both.fake({signature_of_split(ranks), number});
    const auto made = both.member->split(ranks);
    other.join();
    REQUIRE_FALSE(made);
    CHECK(made.failure().code == errc::no_credit);
  }
}

TEST_CASE("shm group: an impossible count of arrivals is reported, not trusted (ME-1)") {
  two_members both{0};
  both.memory->words_of(0).together.arrived.store(1'000'000);
  CHECK(both.run({.call = group_call::barrier}).failure().code == errc::internal);
  CHECK(both.run({.call = group_call::barrier}).failure().code == errc::aborted);
}

TEST_CASE("shm group: counts of pieces that cannot be do not lead out of the staging (SR-2)") {
  two_members both{0};
  std::vector<std::byte> out(100'000);
  const group_operation what{.call = group_call::receive,
                             .type = element_type::int32,
                             .elements = out.size() / 4,
                             .peer = 1,
                             .out = out};
  auto& line = both.fake_line();
  line.pair =
      signature_of({.call = group_call::send, .type = what.type, .elements = what.elements, .peer = 0});
  line.given.store(~0ULL);
  line.taken.store(1ULL << 63);
  line.ticket.store(pair_ticket(0, 1));
  CHECK(both.run(what)); // rubbish, but nothing else was touched
}

TEST_CASE("shm group: the director ends the wait for a member that never comes (GR-2)") {
  two_members both{0};
  for (const auto call : {group_call::barrier, group_call::receive}) {
    std::thread director{[&] { both.director.end_generation(); }};
    CHECK(both.run({.call = call, .peer = 1}).failure().code == errc::aborted);
    director.join();
  }
}

TEST_CASE("shm segment: without groups nothing is larger; with them areas follow each other (SG-2)") {
  for (const std::uint32_t world : {1U, 2U, 5U, 61U, 1024U})
    for (const std::size_t elements : {1U, 4097U, 1'000'000U}) {
      const auto without = layout_of({generation_id{1}, world, 8, elements}).value();
      CHECK(without.groups_at == 0);
      CHECK(without.words_at == 0);
      for (const std::size_t group_bytes : {1U, 4096U, 1'000'001U}) {
        const auto with = layout_of({generation_id{1}, world, 8, elements, group_bytes}).value();
        CHECK(with.words_at + limits::rank_groups_max * sizeof(group_words) <= with.slots_at);
        CHECK(with.words_at % alignof(group_words) == 0);
        CHECK(with.groups_at == without.bytes + (with.slots_at - without.slots_at));
        CHECK(with.staging_at >= world * (sizeof(arrival_line) + sizeof(group_line)));
        CHECK(with.half_bytes >= group_bytes / 2);
        CHECK(with.half_bytes >= world * 64);
        CHECK(with.half_bytes % 64 == 0);
        CHECK(with.group_stride >= with.staging_at + world * 2 * with.half_bytes);
        CHECK(with.bytes == with.groups_at + limits::rank_groups_max * with.group_stride);
      }
    }
  CHECK(layout_of({generation_id{1}, 1024, 8, 1, std::size_t{1} << 30}).failure().code == errc::bad_argument);
  CHECK(layout_of({generation_id{1}, 1, 8, 1, ~std::size_t{0}}).failure().code == errc::bad_argument);
}

} // namespace
} // namespace troupe
