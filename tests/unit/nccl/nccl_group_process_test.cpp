// Rank groups over NCCL between processes, over FAKE libraries of CUDA and NCCL.
#include <catch2/catch_test_macros.hpp>

#include "tests/unit/collective/group_misfits.hpp"
#include "tests/unit/nccl/gpu_fakes.hpp"
#include "tests/unit/nccl/gpu_worlds.hpp"

namespace troupe {
namespace {

std::unique_ptr<worlds::world> fakes() {
  return worlds::gpu_processes(
      {.name = "FAKE libraries of CUDA and NCCL, processes", .libraries = fake::library_names(), .life = {}});
}

TEST_CASE(
    "nccl group: the contract of rank groups holds between processes over FAKE libraries (GR-1 to GR-5, "
    "NG-1 to NG-3)") {
  group_contract::holds_over(*group_worlds::blocking(fakes()));
}

} // namespace
} // namespace troupe
