// Rank groups on real GPUs: the parts of their contract that as many GPUs can play as there are.
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "tests/device/real_gpu.hpp"
#include "tests/unit/collective/group_misfits.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/nccl/gpu_worlds.hpp"

namespace troupe {
namespace {

namespace contract = group_contract;
using device_test::devices_here;
using device_test::real;

TEST_CASE("gpu_alone: rank groups with one rank on one GPU (GR-1, GR-4)") {
  if (devices_here() == 0) SKIP("no GPU was used");
  const auto world = group_worlds::blocking(worlds::gpu_processes(real()));
  for (const std::size_t elements : {0U, 1U, 67U})
    contract::calls_are_right(*world, contract::shape_of(1, 1), elements);
  contract::calls_are_right(*world, contract::shape_of(1, 16 * 1024), 5003);
  contract::a_wrong_call_is_refused(*world, 1, 4096);
  contract::wrong_splits_are_refused(*world, 1);
}

TEST_CASE("gpu_alone: what a rank group's call names may be memory of the device (NG-1)") {
  if (devices_here() == 0) SKIP("no GPU was used");
  const auto settings = real();
  worlds::gpu_director director{settings.libraries};
  const auto shape = contract::shape_of(1, 4096);
  const auto descriptor = director.prepare(shape);
  REQUIRE(!descriptor.empty());
  const auto results = worlds::run_processes(1, [&](std::uint32_t rank) {
    worlds::gpu_process process{settings};
    TROUPE_HOLDS(process.open(rank));
    auto member = process.connect(descriptor, shape, rank_id{rank});
    TROUPE_HOLDS(member);
    constexpr std::size_t elements = 5003;
    const auto values = group_reference::values(3, 0, element_type::bfloat16, elements);
    const auto right = group_reference::reduce(element_type::bfloat16, reduce_op::avg, {values});
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    process.on_owner([&](gpu& calls) {
      in = calls.allocate(values.size()).value();
      out = calls.allocate(values.size()).value();
      (void)calls.copy(in, values.data(), values.size());
    });
    bool done = false;
    (*member)->group()->start({.call = group_call::all_reduce,
                               .type = element_type::bfloat16,
                               .op = reduce_op::avg,
                               .elements = elements,
                               .in = {in, values.size()},
                               .out = {out, values.size()}},
                              [&](const expected<void>& result) { done = result.has_value(); });
    TROUPE_HOLDS(done);
    group_worlds::bytes found(values.size());
    process.on_owner([&](gpu& calls) { (void)calls.copy(found.data(), out, found.size()); });
    TROUPE_HOLDS(found == right);
    member->reset();
    TROUPE_HOLDS(process.settled());
    process.on_owner([&](gpu& calls) { calls.release(in), calls.release(out); });
    return worlds::passed;
  });
  CHECK(results == std::vector<int>{worlds::passed});
}

TEST_CASE("gpu_groups: the contract of rank groups holds between GPUs (GR-1 to GR-6, NG-1 to NG-3)") {
  const auto devices = devices_here();
  if (devices < 2) SKIP("needs 2 GPUs or more; here: " << devices);
  const auto world = group_worlds::blocking(worlds::gpu_processes(real()));
  for (const std::size_t elements : {0U, 1U})
    contract::calls_are_right(*world, contract::shape_of(2, 1), elements);
  contract::misfits_are_told(*world, 2, 4096);
  contract::a_wrong_call_is_refused(*world, 2, 4096);
  contract::wrong_splits_are_refused(*world, 2);
  // Each play makes processes, contexts and communicators anew: seconds.
  for (std::uint32_t ranks = 2; ranks <= std::min(devices, 4U); ++ranks) {
    contract::calls_are_right(*world, contract::shape_of(ranks, 1), 67);
    contract::calls_are_right(*world, contract::shape_of(ranks, 16 * 1024), 5003);
    contract::calls_are_right(*world, contract::shape_of(ranks, 8 * 1024 * 1024), 300'001);
    contract::pair_misfits_are_told(*world, ranks, 4096);
    contract::a_send_to_who_waits_for_all_is_told(*world, ranks, 4096);
    contract::sends_arrive_in_order(*world, ranks, 4096);
    for (const auto call : {group_call::all_reduce, group_call::receive})
      contract::abort_ends_everything(*world, ranks, {.call = call, .elements = 5000, .peer = ranks - 1});
    if (ranks >= 3) contract::splits_are_groups(*world, ranks, 512);
  }
}

} // namespace
} // namespace troupe
