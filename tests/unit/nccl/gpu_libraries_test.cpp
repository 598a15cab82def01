#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/policy/rank_reduction.hpp"
#include "runtime/train/optimizer.hpp"
#include "tests/unit/collective/group_reference.hpp"
#include "tests/unit/collective/reference.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "tests/unit/nccl/gpu_fakes.hpp"
#include "tests/unit/nccl/plain_kernels.hpp"
#include "transports/nccl/loaded_gpu.hpp"

namespace troupe {
namespace {

using fake::variable;

std::string refusal(const gpu_library_names& names, std::uint32_t index = 0) {
  const auto loaded = gpu_libraries::load(names, index);
  if (loaded) return "accepted";
  CHECK(loaded.failure().code == errc::bad_argument);
  CHECK(loaded.failure().text.find('\n') == std::string::npos);
  CHECK(loaded.failure().text.find("; ") != std::string::npos); // what is missing; the remedy
  return loaded.failure().text;
}

TEST_CASE("gpu libraries: what is missing is named, with the remedy, in one line (GL-2)") {
  const auto names = fake::library_names();
  CHECK(refusal(names) == "accepted");
  auto without = names;
  without.cuda = {"libno_such_runtime.so"};
  CHECK(refusal(without).starts_with("no CUDA runtime (libno_such_runtime.so: cannot open"));
  without = names;
  without.nccl = {"libno_such_nccl.so"};
  CHECK(refusal(without).starts_with("no NCCL (libno_such_nccl.so: cannot open"));
  without.nccl = names.kernels;
  CHECK(refusal(without).find("libfake_kernels.so has no ncclGetVersion; install NCCL") != std::string::npos);
  without = names;
  without.kernels = {"libno_such_kernels.so"};
  CHECK(refusal(without).starts_with("no GPU kernels (libno_such_kernels.so: cannot open"));
}

TEST_CASE("gpu libraries: a variable that is empty names nothing") {
  const auto cuda = gpu_library_names{}.cuda;
  const fake::variable empty{cuda_library_variable, ""};
  CHECK(gpu_library_names::from_environment().cuda == cuda);
  const fake::variable named{nccl_library_variable, "libsome.so"};
  CHECK(gpu_library_names::from_environment().nccl == std::vector<std::string>{"libsome.so"});
}

TEST_CASE("gpu libraries: driver, devices and versions are checked (GL-2, NC-9)") {
  const auto names = fake::library_names();
  {
    const variable driver{"FAKE_CUDA_DRIVER", "0"};
    CHECK(refusal(names) ==
          "no NVIDIA driver is loaded (the CUDA runtime 13.0 is there); install the driver");
  }
  {
    const variable driver{"FAKE_CUDA_DRIVER", "12040"};
    CHECK(refusal(names).starts_with("the NVIDIA driver runs CUDA 12.4 at most, the runtime is 13.0; "));
  }
  {
    const variable devices{"FAKE_CUDA_DEVICES", "0"};
    CHECK(refusal(names).starts_with("this machine has no CUDA device; "));
  }
  {
    const variable devices{"FAKE_CUDA_DEVICES", "2"};
    CHECK(refusal(names, 1) == "accepted");
    CHECK(refusal(names, 2).starts_with("no device 2: this machine has 2; use cuda:0 to cuda:1"));
  }
  const variable version{"FAKE_NCCL_VERSION", "21304"};
  CHECK(refusal(names) == "NCCL 2.13.4 is too old; install 2.14 or newer");
}

TEST_CASE("gpu libraries: this machine's own either load or say what is missing (GL-1)") {
  const auto text = refusal({});
  WARN("this machine, cuda:0: " << text);
}

TEST_CASE("gpu libraries: a director takes a unique id from the real NCCL, where it is installed") {
  const auto loaded = gpu_libraries::load_nccl({});
  if (!loaded) SKIP("NCCL is not installed here: " << loaded.failure().text);
  // In a process of its own: NCCL starts a thread for it, and the tests after this one fork.
  const auto results = worlds::run_processes(1, [&](std::uint32_t) {
    loaded_gpu calls{*loaded};
    const auto id = calls.make_unique_id();
    return id && std::ranges::any_of(id->bytes, [](char byte) { return byte != 0; }) ? worlds::passed : 1;
  });
  REQUIRE(results == std::vector<int>{worlds::passed});
  WARN("the real NCCL " << nccl::version_text(loaded->has.version) << " gave a unique id");
}

// --- the plain kernels, which GPUs are compared with, against the CPU's optimizers ---

constexpr std::size_t elements = 1003;

std::vector<float> values(std::uint32_t stream, float scale = 1) {
  std::vector<float> made(elements);
  reference::fill_shard(7, stream, made);
  for (auto& one : made)
    one *= scale;
  return made;
}

TEST_CASE(
    "plain kernels: reductions have the bits of the CPU's, for every type, operation and world (GR-4)") {
  namespace plain = group_reference;
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 13U, 32U, 63U, 64U})
    for (const auto type : plain::all_types) {
      constexpr std::size_t count = 331;
      const auto length = count * size_of(type), stride = length + 64;
      std::vector<std::byte> inputs(world * stride);
      std::vector<const std::byte*> by_rank;
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        by_rank.push_back(inputs.data() + rank * stride);
        std::ranges::copy(plain::values(5, rank, type, count), inputs.data() + rank * stride);
      }
      rank_reduction cpu{world};
      for (const auto op : plain::all_ops) {
        CAPTURE(world, static_cast<int>(type), static_cast<int>(op));
        plain::bytes known(length), found(length);
        cpu.evaluate(type, op, by_rank, count, known.data());
        kernels::plain::reduce({.inputs = inputs.data(),
                                .stride = stride,
                                .world = world,
                                .type = type,
                                .op = op,
                                .result = found.data(),
                                .elements = count});
        CHECK(found == known);
      }
    }
}

TEST_CASE("plain kernels: three SGD steps give the optimizer's bits, with and without momentum") {
  for (const sgd& settings : {sgd{.momentum = 0, .weight_decay = 0.01F}, sgd{.momentum = 0.9F},
                              sgd{.momentum = 0.9F, .weight_decay = 0.1F, .nesterov = true}}) {
    const auto made = make_optimizer(settings);
    REQUIRE(made);
    const auto& optimizer = *made;
    auto parameters = values(1), expected_parameters = parameters;
    std::vector<float> slot(elements), expected_slot(optimizer->slot_names().size() * elements);
    for (std::uint32_t step = 0; step < 3; ++step) {
      const auto gradient = values(10 + step);
      optimizer->apply({.parameters = expected_parameters,
                        .slots = expected_slot,
                        .gradient = gradient,
                        .scale = 0.125F,
                        .rate = 0.05F,
                        .step = step});
      kernels::plain::sgd({.parameters = parameters.data(),
                           .momentum_slot = settings.momentum == 0 ? nullptr : slot.data(),
                           .gradient = gradient.data(),
                           .elements = elements,
                           .scale = 0.125F,
                           .rate = 0.05F,
                           .momentum = settings.momentum,
                           .weight_decay = settings.weight_decay,
                           .nesterov = settings.nesterov ? 1 : 0});
    }
    CHECK(reference::same_bits(parameters, expected_parameters));
  }
}

TEST_CASE("plain kernels: three AdamW steps give the optimizer's bits") {
  const adamw settings;
  const auto made = make_optimizer(settings);
  REQUIRE(made);
  const auto& optimizer = *made;
  auto parameters = values(1), expected_parameters = parameters;
  std::vector<float> mean(elements), variance(elements), slots(2 * elements);
  for (std::uint32_t step = 0; step < 3; ++step) {
    const auto gradient = values(20 + step);
    const update change{.parameters = expected_parameters,
                        .slots = slots,
                        .gradient = gradient,
                        .scale = 0.125F,
                        .rate = 0.001F,
                        .step = step};
    const auto rule = adamw_rule_for(settings, change);
    optimizer->apply(change);
    kernels::plain::adamw({.parameters = parameters.data(),
                           .mean = mean.data(),
                           .variance = variance.data(),
                           .gradient = gradient.data(),
                           .elements = elements,
                           .scale = rule.scale,
                           .beta1 = rule.beta1,
                           .beta2 = rule.beta2,
                           .epsilon = rule.epsilon,
                           .keep = rule.keep,
                           .rate = rule.rate,
                           .root2 = rule.root2});
  }
  CHECK(reference::same_bits(parameters, expected_parameters));
}

} // namespace
} // namespace troupe
