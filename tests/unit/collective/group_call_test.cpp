// What fits a group, what fits together, and how it is told.
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/limits.hpp"
#include "runtime/policy/group_call.hpp"

namespace troupe {
namespace {

std::string refusal(const expected<void>& result) {
  REQUIRE_FALSE(result);
  CHECK(result.failure().code == errc::bad_argument);
  return result.failure().text;
}

TEST_CASE("group call: memory is as large as the call says, and the same or apart") {
  std::vector<std::byte> memory(64);
  const std::span<std::byte> all{memory};
  group_operation what{
      .call = group_call::all_reduce, .elements = 8, .in = all.first(32), .out = all.last(32)};
  CHECK(check_call(what, 0, 2));
  what.out = all.first(32);
  CHECK(check_call(what, 0, 2)); // the very memory
  what.out = all.subspan(4, 32);
  CHECK(refusal(check_call(what, 0, 2)) ==
        "rank group: all_reduce(float32, 8 elements, sum): 'in' and 'out' overlap");
  what.out = all.first(31);
  CHECK(refusal(check_call(what, 0, 2)) ==
        "rank group: all_reduce(float32, 8 elements, sum): 'out' has 31 bytes, not 32");
  what = {.call = group_call::all_gather, .elements = 8, .in = all.first(32), .out = all};
  CHECK(refusal(check_call(what, 0, 2)).ends_with("'in' and 'out' overlap"));
  what = {.call = group_call::broadcast, .elements = 8, .peer = 1, .in = all.first(3), .out = all.first(32)};
  CHECK(check_call(what, 0, 2)); // only rank 1 has something to put in
  CHECK_FALSE(check_call(what, 1, 2));
  what = {.call = group_call::barrier, .elements = 1000, .in = all.first(3)};
  CHECK(check_call(what, 0, 2));
}

TEST_CASE("group call: kinds, peers and sizes that cannot be are refused") {
  group_operation what{.call = group_call::send, .elements = 0, .peer = 2};
  CHECK(refusal(check_call(what, 0, 2)) ==
        "rank group: send(float32, 0 elements, to rank 2): there are 2 ranks");
  what.peer = 0;
  CHECK(refusal(check_call(what, 0, 2)).ends_with("that is the caller itself"));
  CHECK(check_call(what, 1, 2));
  what.op = static_cast<reduce_op>(4);
  CHECK(refusal(check_call(what, 1, 2)).ends_with("does not exist"));
  what = {.call = group_call::all_to_all, .type = element_type::float64, .elements = ~std::size_t{0} / 8 + 1};
  CHECK(refusal(check_call(what, 0, 2)).find("exceeds") != std::string::npos); // and does not wrap around
  for (const std::vector<std::uint32_t>& ranks :
       std::vector<std::vector<std::uint32_t>>{{}, {1, 0}, {1, 1}, {0, 1, 3}})
    CHECK_FALSE(check_split(ranks, 3));
  CHECK(check_split(std::vector<std::uint32_t>{0, 2}, 3));
}

TEST_CASE(
    "group call: a member has so many calls under way and no more; the line says how many, and what to do "
    "(GR-6)") {
  CHECK(check_room(0));
  CHECK(check_room(limits::group_calls_max - 1));
  const auto full = check_room(limits::group_calls_max);
  REQUIRE_FALSE(full);
  CHECK(full.failure().code == errc::no_credit);
  CHECK(full.failure().text == "rank group: 256 calls are under way, and no member has more in one group; "
                               "wait for a `done` before the next");
}

TEST_CASE("group call: the first rank that differs is named, with both calls") {
  const auto sum = signature_of({.call = group_call::all_reduce, .elements = 5});
  const auto avg = signature_of({.call = group_call::all_reduce, .op = reduce_op::avg, .elements = 5});
  CHECK(check_alike(std::vector{sum, sum, sum}));
  CHECK(refusal(check_alike(std::vector{sum, sum, avg, avg})) ==
        "rank group: rank 2 calls all_reduce(float32, 5 elements, avg), rank 0 calls all_reduce(float32, 5 "
        "elements, sum)");
  const auto split = signature_of_split(std::vector<std::uint32_t>{0, 1});
  CHECK(check_alike(std::vector{split, signature_of_split(std::vector<std::uint32_t>{0, 1})}));
  CHECK_FALSE(check_alike(std::vector{split, signature_of_split(std::vector<std::uint32_t>{0, 2})}));
  // What a call has no use for does not count.
  CHECK(signature_of({.call = group_call::barrier, .elements = 7, .peer = 1}) ==
        signature_of({.call = group_call::barrier}));
  CHECK(signature_of({.call = group_call::all_gather, .op = reduce_op::max, .peer = 1}) ==
        signature_of({.call = group_call::all_gather}));
  // Another process may have written anything.
  CHECK(to_string(call_signature{.call = 250}) == "kind 250(float32, 0 elements)");
  CHECK(to_string(call_signature{.call = 0, .type = 99, .op = 98}) ==
        "all_reduce(kind 99, 0 elements, kind 98)");
}

TEST_CASE("group call: a send fits one receive, and both sides are told the same") {
  const auto send = signature_of({.call = group_call::send, .elements = 5, .peer = 3});
  const auto receive = signature_of({.call = group_call::receive, .elements = 5, .peer = 1});
  CHECK(check_partners({1, send}, {3, receive}));
  CHECK(check_partners({3, receive}, {1, send}));
  const auto other = signature_of({.call = group_call::receive, .elements = 6, .peer = 1});
  const auto text = refusal(check_partners({1, send}, {3, other}));
  CHECK(text ==
        "rank group: rank 3 calls receive(float32, 6 elements, from rank 1), rank 1 calls send(float32, 5 "
        "elements, to rank 3)");
  CHECK(refusal(check_partners({3, other}, {1, send})) == text);
}

} // namespace
} // namespace troupe
