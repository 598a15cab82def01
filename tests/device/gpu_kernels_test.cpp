#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/policy/canonical_sum.hpp"
#include "tests/device/real_gpu.hpp"
#include "tests/unit/collective/group_reference.hpp"
#include "tests/unit/collective/reference.hpp"
#include "tests/unit/nccl/plain_kernels.hpp"
#include "transports/nccl/loaded_gpu.hpp"
#include "transports/nccl/sum_layout.hpp"

namespace troupe {
namespace {

constexpr std::size_t elements = 1'000'003;

// The calling thread is the owner; copies wait for what is on the stream.
class bench_gpu {
public:
  bench_gpu()
      : calls_{device_test::libraries()} {
    REQUIRE(calls_.open(0));
  }
  ~bench_gpu() {
    for (auto* one : memory_)
      calls_.release(one, memory_place::device);
    calls_.close();
  }
  bench_gpu(const bench_gpu&) = delete;
  bench_gpu& operator=(const bench_gpu&) = delete;

  std::byte* allocate(std::size_t bytes) {
    const auto made = calls_.allocate(bytes, memory_place::device);
    REQUIRE(made);
    memory_.push_back(*made);
    return *made;
  }
  float* put(std::span<const float> values) {
    auto* const there = allocate(values.size_bytes());
    REQUIRE(calls_.copy(there, values.data(), values.size_bytes()));
    return reinterpret_cast<float*>(there);
  }
  std::vector<float> get(const float* there, std::size_t count) {
    std::vector<float> here(count);
    REQUIRE(calls_.copy(here.data(), there, count * sizeof(float)));
    return here;
  }
  loaded_gpu& calls() { return calls_; }

private:
  loaded_gpu calls_;
  std::vector<std::byte*> memory_;
};

std::vector<float> values(std::uint32_t stream) {
  std::vector<float> made(elements);
  reference::fill_shard(7, stream, made);
  return made;
}

TEST_CASE("gpu_kernels: the ordered sum on a GPU has the bits of the sum on the CPU (CO-1)") {
  bench_gpu gpu;
  for (const std::uint32_t world : {2U, 3U, 5U, 8U})
    for (const std::uint32_t rank : {0U, world - 1}) {
      CAPTURE(world, rank);
      const collective_shape shape{generation_id{1}, world, 8, elements};
      const auto layout = sum_layout::of(shape, rank_id{rank});
      REQUIRE(layout);
      std::vector<std::byte> host(layout->bytes());
      const auto floats = std::span{reinterpret_cast<float*>(host.data()), layout->bytes() / sizeof(float)};
      reference::fill_shard(world, rank, floats); // contributions, received parts, and what is overwritten
      auto* const base = gpu.allocate(layout->bytes());
      REQUIRE(gpu.calls().copy(base, host.data(), host.size()));
      const auto tables = layout->tables(base);
      REQUIRE(gpu.calls().copy(layout->tables_at(base), tables.data(), tables.size()));
      REQUIRE(gpu.calls().sum(layout->arguments(base)));
      const auto found = gpu.get(layout->own_slice(base), layout->slice());

      const auto own_tables = layout->tables(host.data());
      std::memcpy(layout->tables_at(host.data()), own_tables.data(), own_tables.size());
      kernels::plain::sum(layout->arguments(host.data()));
      CHECK(reference::same_bits(found, {layout->own_slice(host.data()), layout->slice()}));
    }
}

TEST_CASE(
    "gpu_kernels: reductions on a GPU have the bits of the CPU's, for every type and operation (GR-4)") {
  namespace plain = group_reference;
  bench_gpu gpu;
  constexpr std::size_t count = 100'003;
  for (const std::uint32_t world : {1U, 2U, 3U, 5U, 8U})
    for (const auto type : plain::all_types) {
      const auto length = count * size_of(type), stride = (length + 127) / 64 * 64;
      std::vector<std::byte> inputs(world * stride), found(length), known(length);
      for (std::uint32_t rank = 0; rank < world; ++rank)
        std::ranges::copy(plain::values(5, rank, type, count), inputs.data() + rank * stride);
      auto* const there = gpu.allocate(inputs.size());
      auto* const result = gpu.allocate(length);
      REQUIRE(gpu.calls().copy(there, inputs.data(), inputs.size()));
      for (const auto op : plain::all_ops) {
        CAPTURE(world, static_cast<int>(type), static_cast<int>(op));
        kernels::reduce_arguments what{.inputs = there,
                                       .stride = stride,
                                       .world = world,
                                       .type = type,
                                       .op = op,
                                       .result = result,
                                       .elements = count};
        REQUIRE(gpu.calls().reduce(what));
        REQUIRE(gpu.calls().copy(found.data(), result, length));
        what.inputs = inputs.data();
        what.result = known.data();
        kernels::plain::reduce(what);
        CHECK((found == known));
      }
    }
}

TEST_CASE("gpu_kernels: packing moves every segment to its place") {
  bench_gpu gpu;
  const auto from = values(1);
  auto* const source = gpu.put(from);
  auto* const into = reinterpret_cast<float*>(gpu.allocate(elements * sizeof(float)));
  const std::vector<kernels::segment> segments{
      {source + 700'000, 0, 300'003}, {source, 300'003, 1}, {source + 1, 300'004, 699'999}};
  auto* const table = gpu.allocate(segments.size() * sizeof(kernels::segment));
  REQUIRE(gpu.calls().copy(table, segments.data(), segments.size() * sizeof(kernels::segment)));
  const kernels::pack_arguments what{reinterpret_cast<const kernels::segment*>(table),
                                     static_cast<std::uint32_t>(segments.size()), into};
  REQUIRE(gpu.calls().kernel_calls().pack(&what, gpu.calls().stream()) == 0);
  auto expected_values = from;
  std::rotate(expected_values.begin(), expected_values.begin() + 700'000, expected_values.end());
  CHECK(reference::same_bits(gpu.get(into, elements), expected_values));
}

TEST_CASE("gpu_kernels: SGD on a GPU has the bits of the plain code") {
  bench_gpu gpu;
  for (const int kind : {0, 1, 2}) {
    CAPTURE(kind);
    auto parameters = values(1), slot = values(2), gradient = values(3);
    kernels::sgd_arguments what{.parameters = gpu.put(parameters),
                                .momentum_slot = kind == 0 ? nullptr : gpu.put(slot),
                                .gradient = gpu.put(gradient),
                                .elements = elements,
                                .scale = 0.0078125F,
                                .rate = 0.05F,
                                .momentum = kind == 0 ? 0.0F : 0.9F,
                                .weight_decay = 0.01F,
                                .nesterov = kind == 2 ? 1 : 0};
    const auto* const there = what.parameters;
    for (int step = 0; step < 3; ++step)
      REQUIRE(gpu.calls().kernel_calls().sgd(&what, gpu.calls().stream()) == 0);
    what.parameters = parameters.data();
    what.momentum_slot = kind == 0 ? nullptr : slot.data();
    what.gradient = gradient.data();
    for (int step = 0; step < 3; ++step)
      kernels::plain::sgd(what);
    CHECK(reference::same_bits(gpu.get(there, elements), parameters));
  }
}

TEST_CASE("gpu_kernels: AdamW on a GPU has the bits of the plain code, small numbers included") {
  bench_gpu gpu;
  auto parameters = values(1), mean = values(2), variance = std::vector<float>(elements),
       gradient = values(3);
  for (auto& one : gradient)
    one *= 1e-18F; // squares are below the smallest normal number
  kernels::adamw_arguments what{.parameters = gpu.put(parameters),
                                .mean = gpu.put(mean),
                                .variance = gpu.put(variance),
                                .gradient = gpu.put(gradient),
                                .elements = elements,
                                .scale = 0.25F,
                                .beta1 = 0.9F,
                                .beta2 = 0.999F,
                                .epsilon = 1e-8F,
                                .keep = 0.99999F,
                                .rate = 0.01F,
                                .root2 = 31.6F};
  const auto on_device = what;
  for (int step = 0; step < 3; ++step)
    REQUIRE(gpu.calls().kernel_calls().adamw(&what, gpu.calls().stream()) == 0);
  what.parameters = parameters.data();
  what.mean = mean.data();
  what.variance = variance.data();
  what.gradient = gradient.data();
  for (int step = 0; step < 3; ++step)
    kernels::plain::adamw(what);
  CHECK(reference::same_bits(gpu.get(on_device.parameters, elements), parameters));
  CHECK(reference::same_bits(gpu.get(on_device.variance, elements), variance));
}

} // namespace
} // namespace troupe
