// The contract of rank groups, as parts that any world can play: calls that fit (GR-1 to GR-6).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/limits.hpp"
#include "tests/unit/collective/collective_contract.hpp"
#include "tests/unit/collective/group_reference.hpp"
#include "tests/unit/collective/group_worlds.hpp"

namespace troupe::group_contract {

using namespace group_worlds;
namespace plain = group_reference;

inline void plays(group_world& world, const collective_shape& shape, const part& played) {
  CAPTURE(world.name(), shape.world, shape.group_bytes);
  REQUIRE(world.play(shape, played) == std::vector<int>(shape.world, worlds::passed));
}

inline collective_shape shape_of(std::uint32_t world, std::size_t group_bytes) {
  return {generation_id{1}, world, 8, 16, group_bytes};
}

inline bytes slice(const bytes& from, std::size_t part, std::size_t length) {
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(part * length);
  return {begin, begin + static_cast<std::ptrdiff_t>(length)};
}

// What every rank puts in (`world` parts of `elements` elements), and its parts reduced by each operation.
struct known_values {
  element_type type;
  std::size_t elements;
  std::size_t length; // of a part, in bytes
  std::vector<bytes> in;
  std::vector<bytes> reduced;

  known_values(std::uint32_t world, element_type of, std::size_t count)
      : type{of}
      , elements{count}
      , length{count * size_of(of)} {
    for (std::uint32_t rank = 0; rank < world; ++rank)
      in.push_back(plain::values(7 + count, rank, type, world * elements));
    for (const auto op : plain::all_ops)
      reduced.push_back(plain::reduce(type, op, in));
  }
  [[nodiscard]] std::uint32_t world() const { return static_cast<std::uint32_t>(in.size()); }
  [[nodiscard]] group_operation call(group_call what, std::uint32_t peer = 0) const {
    return {.call = what, .type = type, .elements = elements, .peer = peer};
  }
  // Part `part` of all ranks, by rank.
  [[nodiscard]] bytes gathered(std::uint32_t part) const {
    bytes all;
    for (const auto& values : in) {
      const auto one = slice(values, part, length);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }
};

// Calls everything, and knows what must come out.
class script {
public:
  script(player& one, rank_group& group, const known_values& known)
      : player_{one}
      , group_{group}
      , known_{known}
      , own_{known.in[group.rank()]} {}

  void reductions() {
    for (const auto op : plain::all_ops) {
      const auto& all = known_.reduced[static_cast<std::size_t>(op)];
      auto what = known_.call(group_call::all_reduce);
      what.op = op;
      expect(what, slice(own_, 0, known_.length), slice(all, 0, known_.length));
      what.call = group_call::reduce_scatter;
      expect(what, own_, slice(all, group_.rank(), known_.length));
    }
  }
  void exchanges() {
    const auto first = slice(own_, 0, known_.length);
    expect(known_.call(group_call::all_gather), first, known_.gathered(0));
    expect(known_.call(group_call::all_to_all), own_, known_.gathered(group_.rank()));
    for (std::uint32_t root = 0; root < group_.world(); ++root)
      expect(known_.call(group_call::broadcast, root), root == group_.rank() ? first : bytes{},
             slice(known_.in[root], 0, known_.length));
    expect({.call = group_call::barrier}, {}, {});
  }
  // Part `to` of `from`, for all pairs, in one order.
  void pairs() {
    for (std::uint32_t from = 0; from < group_.world(); ++from)
      for (std::uint32_t to = 0; to < group_.world(); ++to) {
        if (from == to) continue;
        if (group_.rank() == from)
          expect(known_.call(group_call::send, to), slice(own_, to, known_.length), {});
        if (group_.rank() == to)
          expect(known_.call(group_call::receive, from), {}, slice(known_.in[from], to, known_.length));
      }
  }
  void in_place() {
    const auto first = slice(own_, 0, known_.length);
    expect_in_place(known_.call(group_call::all_reduce), first, slice(known_.reduced[0], 0, known_.length));
    expect_in_place(known_.call(group_call::all_to_all), own_, known_.gathered(group_.rank()));
    expect_in_place(known_.call(group_call::broadcast, 0), first, slice(known_.in[0], 0, known_.length));
  }
  void everything() {
    reductions();
    exchanges();
    pairs();
    in_place();
  }
  [[nodiscard]] static int check(player& one, const std::vector<bytes>& expected_outs) {
    TROUPE_HOLDS(one.all_done_in_order()); // GR-1
    TROUPE_HOLDS(one.records().size() == expected_outs.size());
    for (std::size_t i = 0; i < expected_outs.size(); ++i) {
      TROUPE_HOLDS(one.records()[i].succeeded());
      TROUPE_HOLDS(one.records()[i].out == expected_outs[i]); // GR-4
    }
    return worlds::passed;
  }
  std::vector<bytes> outs;

private:
  void expect(const group_operation& what, const bytes& in, bytes out) {
    player_.call(group_, what, in, out.size());
    outs.push_back(std::move(out));
  }
  void expect_in_place(const group_operation& what, const bytes& memory, bytes out) {
    player_.call_in_place(group_, what, memory);
    outs.push_back(std::move(out));
  }

  player& player_;
  rank_group& group_;
  const known_values& known_;
  const bytes& own_;
};

// Every call, type and operation against the reference; all calls in flight at once where nothing blocks.
inline void calls_are_right(group_world& world, const collective_shape& shape, std::size_t elements) {
  CAPTURE(elements);
  std::vector<known_values> known;
  for (const auto type : plain::all_types)
    known.emplace_back(shape.world, type, elements);
  std::vector<std::vector<bytes>> outs(shape.world); // by rank; a forked rank fills its own copy
  plays(world, shape,
        {[&](player& one) {
           for (const auto& values : known) {
             script calls{one, one.group(), values};
             calls.everything();
             auto& mine = outs[one.rank()];
             mine.insert(mine.end(), calls.outs.begin(), calls.outs.end());
           }
         },
         [&](player& one) { return script::check(one, outs[one.rank()]); }});
}

inline record& call_sized(player& one, const group_operation& what) {
  const auto world = one.group().world();
  const auto length = what.elements * size_of(what.type);
  const bool many_in = what.call == group_call::reduce_scatter || what.call == group_call::all_to_all;
  const bool many_out = what.call == group_call::all_gather || what.call == group_call::all_to_all;
  return one.call(one.group(), what, bytes(many_in ? world * length : length),
                  many_out ? world * length : length);
}

// A call that does not fit the group is refused in its turn, and the group goes on.
inline void a_wrong_call_is_refused(group_world& world, std::uint32_t ranks, std::size_t group_bytes) {
  const group_operation eight{.call = group_call::all_reduce, .elements = 8};
  plays(world, shape_of(ranks, group_bytes),
        {[&](player& one) {
           auto& group = one.group();
           one.barrier(group);
           auto what = eight;
           one.call(group, what, bytes(31), 32);
           one.call(group, what, bytes(32), 33);
           what.call = group_call::all_to_all;
           one.call(group, what, bytes(ranks * 32U), ranks * 32U + 4);
           what = {.call = group_call::broadcast, .elements = 8, .peer = ranks};
           one.call(group, what, bytes(32), 32);
           what = {.call = group_call::send, .elements = 8, .peer = one.rank()};
           one.call(group, what, bytes(32), 0);
           what = {.call = group_call::all_reduce, .elements = ~std::size_t{0} / 2};
           one.call(group, what, bytes(32), 32);
           what = {.call = static_cast<group_call>(77), .elements = 8};
           one.call(group, what, bytes(32), 32);
           what = {.call = group_call::barrier, .type = static_cast<element_type>(6)};
           one.call(group, what, {}, 0);
           one.barrier(group);
         },
         [&](player& one) {
           TROUPE_HOLDS(one.all_done_in_order());
           const auto& records = one.records();
           for (std::size_t i = 0; i < records.size(); ++i)
             TROUPE_HOLDS(i == 0 || i + 1 == records.size() ? records[i].succeeded()
                                                            : records[i].failed_with(errc::bad_argument));
           return worlds::passed;
         }});
}

// GR-6: as many calls as may be under way, a split among them. Further ones are refused at once, and there is
// room again as soon as one is done. A group that was split off has a limit of its own.
inline void calls_under_way_are_bounded(group_world& world, std::uint32_t ranks) {
  const bool bounded = !world.blocks(); // elsewhere there is never a second one
  const std::size_t most = bounded ? limits::group_calls_max : 2, more = 3;
  const auto refused = [most](const error& why) {
    return why.code == errc::no_credit &&
           why.text == "rank group: " + std::to_string(most) +
                           " calls are under way, and no member has more in one group; wait for a `done` "
                           "before the next";
  };
  plays(world, shape_of(ranks, 4096),
        {[&](player& one) {
           auto* part = one.split(one.group(), {0, 1});
           one.barrier(one.group()).then = [&one] { one.barrier(one.group()); };
           for (std::size_t i = 2; i < most; ++i)
             one.barrier(one.group());
           (void)one.split(one.group(), {0});
           for (std::size_t i = 0; i < more; ++i) // also so that nobody leaves before all have split
             one.barrier(one.group());
           if (part != nullptr) one.barrier(*part);
         },
         [&](player& one) {
           const auto& records = one.records();
           TROUPE_HOLDS(records.size() == most + more - 1 + (one.rank() < 2 ? 1 : 0) + (bounded ? 1 : 0));
           std::size_t place = 0;
           for (std::size_t i = 0; i < records.size(); ++i) {
             const auto& call = records[i];
             TROUPE_HOLDS(call.dones == 1);
             if (bounded && i >= most - 1 && i < most - 1 + more) {
               TROUPE_HOLDS(!*call.result && refused(call.result->failure()));
               TROUPE_HOLDS(call.place == i - (most - 1)); // before all others
               continue;
             }
             TROUPE_HOLDS(call.succeeded());
             if (call.group != &one.group()) continue;
             TROUPE_HOLDS(i == 0 || call.place > place); // GR-1
             place = call.place;
           }
           const auto& last_split = one.splits()[1];
           TROUPE_HOLDS(last_split.has_value() == bounded);
           TROUPE_HOLDS(!bounded || refused(*last_split));
           return worlds::passed;
         }});
}

// GR-2: the last rank does not come, and aborts; every pending and later call of all groups ends.
inline void abort_ends_everything(group_world& world, std::uint32_t ranks, const group_operation& what) {
  CAPTURE(static_cast<int>(what.call));
  const auto last = ranks - 1;
  plays(world, shape_of(ranks, 4096),
        {[&](player& one) {
           one.barrier(one.group());
           auto* all = one.split(one.group(), {0, last});
           if (one.rank() == last) {
             one.member().abort();
             one.member().abort(); // idempotent
           } else if (what.call != group_call::receive || one.rank() == 0) {
             call_sized(one, what);
           }
           if (all != nullptr) one.barrier(*all);
           one.barrier(one.group());
           (void)one.split(one.group(), {0});
         },
         [&](player& one) {
           TROUPE_HOLDS(one.all_done_in_order());
           for (std::size_t i = 1; i < one.records().size(); ++i)
             TROUPE_HOLDS(one.records()[i].failed_with(errc::aborted));
           return worlds::passed;
         }});
}

// Groups of some ranks, of one, and of a group's ranks; each with everything under way, between calls of all.
inline void splits_are_groups(group_world& world, std::uint32_t ranks, std::size_t group_bytes) {
  std::vector<std::uint32_t> odd, even;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    (rank % 2 == 0 ? even : odd).push_back(rank);
  const auto values_for = [](std::size_t members) {
    return known_values{static_cast<std::uint32_t>(members), element_type::bfloat16, 333};
  };
  const auto of_all = values_for(ranks), of_even = values_for(even.size()), of_odd = values_for(odd.size()),
             of_one = values_for(1);
  std::vector<std::vector<bytes>> outs(ranks);
  std::vector<int> sound(ranks);
  plays(world, shape_of(ranks, group_bytes),
        {[&](player& one) {
           const auto run = [&](rank_group& group, const known_values& known) {
             script calls{one, group, known};
             calls.everything();
             auto& mine = outs[one.rank()];
             mine.insert(mine.end(), calls.outs.begin(), calls.outs.end());
           };
           const bool is_even = one.rank() % 2 == 0;
           auto* first = one.split(one.group(), even);
           auto* second = one.split(one.group(), odd);
           auto* mine = is_even ? first : second;
           run(one.group(), of_all);
           run(*mine, is_even ? of_even : of_odd);
           run(one.group(), of_all);
           auto* nested = one.split(*mine, {mine->world() - 1});
           if (nested != nullptr) run(*nested, of_one);
           run(*mine, is_even ? of_even : of_odd);
           sound[one.rank()] = (is_even ? second : first) == nullptr && mine->rank() == one.rank() / 2 &&
                               (nested != nullptr) == (mine->rank() + 1 == mine->world());
         },
         [&](player& one) {
           TROUPE_HOLDS(sound[one.rank()]);
           return script::check(one, outs[one.rank()]);
         }});
}

inline void wrong_splits_are_refused(group_world& world, std::uint32_t ranks) {
  plays(world, shape_of(ranks, 1),
        {[&](player& one) {
           for (const auto& wrong : std::vector<std::vector<std::uint32_t>>{{}, {1, 0}, {0, 0}, {ranks}})
             (void)one.split(one.group(), wrong);
           for (std::uint32_t i = 0; i < limits::rank_groups_max; ++i)
             (void)one.split(one.group(), {0});
           one.barrier(one.group());
         },
         [&](player& one) {
           const auto& splits = one.splits();
           for (std::size_t i = 0; i < splits.size(); ++i) {
             const bool bad = i < 4, last = i + 1 == splits.size();
             TROUPE_HOLDS(splits[i].has_value() == (bad || last));
             TROUPE_HOLDS(!bad || splits[i]->code == errc::bad_argument);
             TROUPE_HOLDS(!last || splits[i]->code == errc::no_credit);
           }
           TROUPE_HOLDS(one.all_done_in_order());
           TROUPE_HOLDS(one.records()[0].succeeded());
           return worlds::passed;
         }});
}

// What rank 0 sends, and rank 1 answers, arrives in order whatever its size; calls of all in between.
inline void sends_arrive_in_order(group_world& world, std::uint32_t ranks, std::size_t group_bytes) {
  constexpr std::uint32_t rounds = 24;
  const auto sent = [](std::uint32_t round) {
    return plain::values(round, 9, element_type::int32, round * round * 11);
  };
  plays(world, shape_of(ranks, group_bytes),
        {[&](player& one) {
           for (std::uint32_t round = 0; round < rounds; ++round) {
             const auto values = sent(round);
             const bool sends = one.rank() == round % 2;
             const group_operation what{.call = sends ? group_call::send : group_call::receive,
                                        .type = element_type::int32,
                                        .elements = values.size() / 4,
                                        .peer = 1 - one.rank()};
             if (one.rank() < 2)
               one.call(one.group(), what, sends ? values : bytes{}, sends ? 0 : values.size());
             if (round % 5 == 0) one.barrier(one.group());
           }
         },
         [&](player& one) {
           TROUPE_HOLDS(one.all_done_in_order());
           std::uint32_t round = 0;
           for (const auto& call : one.records()) {
             TROUPE_HOLDS(call.succeeded());
             if (call.what.call == group_call::barrier) continue;
             if (call.what.call == group_call::receive) TROUPE_HOLDS(call.out == sent(round));
             ++round;
           }
           return worlds::passed;
         }});
}

// GR-2 in a busy run: everybody leaves with the same number of complete calls. Where calls block.
inline void an_abort_splits_nobody(worlds::world& world, const collective_shape& shape, std::size_t elements,
                                   std::uint64_t after_calls) {
  CAPTURE(world.name(), shape.world, elements, after_calls);
  constexpr int counted = 100'000; // keeps counts apart from line numbers
  const known_values known{shape.world, element_type::float32, elements};
  const auto results = world.run(shape, [&](communicator& member, std::uint32_t rank) {
    std::atomic<std::uint64_t> calls{0};
    std::thread watcher;
    bool struck = true;
    if (rank == 0)
      watcher = std::thread{[&] {
        struck = worlds::eventually([&] { return calls.load() >= after_calls; });
        member.abort();
      }};
    player one{member, rank};
    auto what = known.call(group_call::all_reduce);
    const auto in = slice(known.in[rank], 0, known.length);
    const auto right = slice(known.reduced[0], 0, known.length);
    bool all_right = true;
    errc end{};
    for (;; ++calls) {
      const auto& made = one.call(one.group(), what, in, known.length);
      if (made.succeeded()) {
        all_right = all_right && made.out == right;
        continue;
      }
      end = made.result->failure().code;
      break;
    }
    if (watcher.joinable()) watcher.join();
    TROUPE_HOLDS(struck);
    TROUPE_HOLDS(all_right);
    TROUPE_HOLDS(end == errc::aborted);
    return counted + static_cast<int>(calls.load());
  });
  REQUIRE(results[0] >= counted);
  REQUIRE(results == std::vector<int>(shape.world, results[0]));
}

} // namespace troupe::group_contract
