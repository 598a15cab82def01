// The contract of rank groups, second half: calls that do not fit each other; and everything over one world.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/unit/collective/group_contract.hpp"

namespace troupe::group_contract {

// A call and the one that rank `other` makes instead.
struct misfit {
  group_operation right;
  group_operation wrong;
};

inline int check_misfit(player& one, std::uint32_t named) {
  TROUPE_HOLDS(one.all_done_in_order());
  const auto& records = one.records();
  TROUPE_HOLDS(records[0].succeeded());
  TROUPE_HOLDS(records[1].failed_with(errc::bad_argument));
  const auto& text = records[1].result->failure().text;
  TROUPE_HOLDS(text.find("rank " + std::to_string(named) + " calls ") != std::string::npos);
  TROUPE_HOLDS(text.find("rank 0 calls ") != std::string::npos);
  TROUPE_HOLDS(std::ranges::count(records[1].out, untouched) == std::ssize(records[1].out)); // nothing moved
  for (std::size_t i = 2; i < records.size(); ++i)
    TROUPE_HOLDS(records[i].failed_with(errc::aborted));
  return worlds::passed;
}

// Everyone is told the first rank that differs, and both calls; then the group is of no use.
inline void a_misfit_is_told(group_world& world, const collective_shape& shape, const misfit& calls,
                             std::uint32_t other) {
  CAPTURE(other, static_cast<int>(calls.wrong.call));
  const auto issue = [&](player& one) {
    one.barrier(one.group());
    call_sized(one, one.rank() == other ? calls.wrong : calls.right);
    one.barrier(one.group());
    one.barrier(one.group());
  };
  // Where rank 0 is the odd one, rank 1 is the first that differs from it.
  plays(world, shape, {issue, [&](player& one) { return check_misfit(one, other == 0 ? 1 : other); }});
}

inline void misfits_are_told(group_world& world, std::uint32_t ranks, std::size_t group_bytes) {
  const group_operation reduce{.call = group_call::all_reduce, .elements = 5000};
  const auto with = [](group_operation what, auto change) {
    change(what);
    return what;
  };
  const auto from_one = with(reduce, [](auto& w) { w.call = group_call::broadcast, w.peer = 1; });
  const misfit all[]{
      {reduce, with(reduce, [](auto& w) { w.call = group_call::reduce_scatter; })},
      {reduce, with(reduce, [](auto& w) { w.call = group_call::barrier; })},
      {reduce, with(reduce, [](auto& w) { w.type = element_type::int32; })},
      {reduce, with(reduce, [](auto& w) { w.op = reduce_op::avg; })},
      {reduce, with(reduce, [](auto& w) { w.elements = 4999; })},
      {from_one, with(from_one, [](auto& w) { w.peer = 0; })},
  };
  for (const auto& one : all)
    for (const std::uint32_t other : {0U, ranks - 1})
      a_misfit_is_told(world, shape_of(ranks, group_bytes), one, other);
}

// Ranks 0 and 1 call each other in ways that do not fit; whoever else is there finds the group aborted.
inline void pair_misfits_are_told(group_world& world, std::uint32_t ranks, std::size_t group_bytes) {
  const group_operation send{.call = group_call::send, .elements = 100, .peer = 1};
  const group_operation receive{.call = group_call::receive, .elements = 100, .peer = 0};
  const auto with = [](group_operation what, auto change) {
    change(what);
    return what;
  };
  const group_operation wrong[]{
      with(receive, [](auto& w) { w.call = group_call::send; }),
      with(receive, [](auto& w) { w.elements = 101; }),
      with(receive, [](auto& w) { w.type = element_type::float64; }),
  };
  for (const auto& other : wrong)
    plays(world, shape_of(ranks, group_bytes),
          {[&](player& one) {
             one.barrier(one.group());
             if (one.rank() < 2) call_sized(one, one.rank() == 0 ? send : other);
             one.barrier(one.group());
           },
           [&](player& one) {
             if (one.rank() < 2) return check_misfit(one, 1);
             TROUPE_HOLDS(one.all_done_in_order());
             TROUPE_HOLDS(one.records()[1].failed_with(errc::aborted));
             return worlds::passed;
           }});
}

// A send to a rank that waits for all: it would never come.
inline void a_send_to_who_waits_for_all_is_told(group_world& world, std::uint32_t ranks,
                                                std::size_t group_bytes) {
  plays(world, shape_of(ranks, group_bytes),
        {[&](player& one) {
           one.barrier(one.group());
           if (one.rank() == 0) call_sized(one, {.call = group_call::send, .elements = 3, .peer = 1});
           one.barrier(one.group());
         },
         [&](player& one) {
           TROUPE_HOLDS(one.all_done_in_order());
           if (one.rank() == 0) return check_misfit(one, 1);
           TROUPE_HOLDS(one.records()[1].result && !*one.records()[1].result);
           return worlds::passed;
         }});
}

// Told at once where a split may block; everywhere, the group itself is of no more use.
inline void a_split_misfit_is_told(group_world& world, std::uint32_t ranks) {
  plays(world, shape_of(ranks, 1),
        {[&](player& one) {
           auto* made = one.split(one.group(), {0, one.rank() + 1 == ranks ? 2U : 1U});
           if (made != nullptr) one.barrier(*made);
           one.barrier(one.group());
         },
         [&](player& one) {
           TROUPE_HOLDS(one.all_done_in_order());
           TROUPE_HOLDS(one.records().back().failed_with(errc::aborted));
           return worlds::passed;
         }});
}

inline void holds_over(group_world& world) {
  for (std::uint32_t ranks = 1; ranks <= 5; ++ranks) {
    for (const std::size_t elements : {0U, 1U, 67U})
      calls_are_right(world, shape_of(ranks, 1), elements); // the least staging
    calls_are_right(world, shape_of(ranks, 16 * 1024), 5003);
    calls_are_right(world, shape_of(ranks, 1024 * 1024), 1000); // in one piece
  }
  for (const std::uint32_t ranks : {2U, 3U}) {
    misfits_are_told(world, ranks, 4096);
    pair_misfits_are_told(world, ranks, 4096);
    a_send_to_who_waits_for_all_is_told(world, ranks, 4096);
    a_wrong_call_is_refused(world, ranks, 4096);
    sends_arrive_in_order(world, ranks, 4096);
    wrong_splits_are_refused(world, ranks);
    calls_under_way_are_bounded(world, ranks);
    for (const auto call : {group_call::all_reduce, group_call::all_to_all, group_call::broadcast,
                            group_call::barrier, group_call::receive})
      abort_ends_everything(world, ranks, {.call = call, .elements = 5000, .peer = ranks - 1});
  }
  a_split_misfit_is_told(world, 3);
  for (std::uint32_t ranks = 3; ranks <= 5; ++ranks)
    splits_are_groups(world, ranks, 512);
}

} // namespace troupe::group_contract
