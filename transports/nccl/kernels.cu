// The kernel module (kernel_api.hpp): the ordered sum and reductions, packing, and the
// optimizers, for nvcc.
//
// Built only where the toolkit is found, with -fmad=false: the bits are those of the CPU's plain code.
// One thread an element; all are limited by memory bandwidth.
#include <cuda_runtime_api.h>

#include "runtime/policy/reduce_rules.hpp"
#include "runtime/train/update_rules.hpp"
#include "transports/nccl/kernel_api.hpp"
#include "transports/nccl/limits.hpp"

namespace troupe::kernels {
namespace {

constexpr unsigned int threads = 256;
constexpr std::size_t blocks_max = 1U << 16; // larger arrays are walked in strides

__device__ std::size_t first_element() {
  return blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
}
__device__ std::size_t stride() {
  return gridDim.x * static_cast<std::size_t>(blockDim.x);
}

__global__ void sum_kernel(sum_arguments what) {
  for (std::size_t i = first_element(); i < what.elements; i += stride()) {
    float stack[limits::nccl_sum_depth_max];
    std::uint32_t depth = 0;
    for (std::uint32_t step = 0; step < what.steps; ++step) {
      const std::uint32_t slot = what.program[step];
      if (slot == add) {
        --depth;
        stack[depth - 1] = stack[depth - 1] + stack[depth];
      } else {
        stack[depth++] = what.slots[slot][i];
      }
    }
    what.result[i] = stack[0];
  }
}

template <class Codec>
__global__ void reduce_kernel(reduce_arguments what) {
  using stored = typename Codec::stored;
  using computed = typename Codec::computed;
  auto* const result = reinterpret_cast<stored*>(what.result);
  for (std::size_t i = first_element(); i < what.elements; i += stride()) {
    const auto value_of = [&](std::uint32_t rank) {
      return Codec::load(reinterpret_cast<const stored*>(what.inputs + rank * what.stride)[i]);
    };
    result[i] = Codec::store(reduce_rules::reduced<computed>(what.op, what.world, value_of));
  }
}

__global__ void pack_kernel(pack_arguments what) {
  for (std::uint32_t s = blockIdx.y; s < what.count; s += gridDim.y) {
    const segment one = what.segments[s];
    for (std::size_t i = first_element(); i < one.elements; i += stride())
      what.into[one.into + i] = one.from[i];
  }
}

enum class sgd_kind : int { plain, momentum, nesterov };

template <sgd_kind Kind>
__global__ void sgd_kernel(sgd_arguments what, sgd_rule rule) {
  for (std::size_t i = first_element(); i < what.elements; i += stride()) {
    if constexpr (Kind == sgd_kind::plain)
      rule.plain(what.parameters[i], what.gradient[i]);
    else
      rule.with_momentum<Kind == sgd_kind::nesterov>(what.parameters[i], what.momentum_slot[i],
                                                     what.gradient[i]);
  }
}

__global__ void adamw_kernel(adamw_arguments what, adamw_rule rule) {
  for (std::size_t i = first_element(); i < what.elements; i += stride())
    rule.apply(what.parameters[i], what.mean[i], what.variance[i], what.gradient[i]);
}

unsigned int blocks_for(std::size_t elements) {
  const std::size_t blocks = (elements + threads - 1) / threads;
  return static_cast<unsigned int>(blocks < blocks_max ? blocks : blocks_max);
}

int launched() {
  return static_cast<int>(cudaGetLastError());
}

template <class Codec>
int reduce_as(const reduce_arguments& what, CUstream_st* stream) {
  reduce_kernel<Codec><<<blocks_for(what.elements), threads, 0, stream>>>(what);
  return launched();
}

} // namespace
} // namespace troupe::kernels

using namespace troupe::kernels;

extern "C" {

int troupe_kernels_version() {
  return api_version * 100 + CUDART_VERSION / 1000;
}

int troupe_kernels_sum(const sum_arguments* what, CUstream_st* stream) {
  if (what->elements == 0) return 0;
  sum_kernel<<<blocks_for(what->elements), threads, 0, stream>>>(*what);
  return launched();
}

int troupe_kernels_reduce(const reduce_arguments* what, CUstream_st* stream) {
  using namespace troupe::reduce_rules;
  if (what->elements == 0) return 0;
  switch (what->type) {
  case troupe::element_type::float32:
    return reduce_as<plain_codec<float>>(*what, stream);
  case troupe::element_type::float64:
    return reduce_as<plain_codec<double>>(*what, stream);
  case troupe::element_type::float16:
    return reduce_as<float16_codec>(*what, stream);
  case troupe::element_type::bfloat16:
    return reduce_as<bfloat16_codec>(*what, stream);
  case troupe::element_type::int32:
    return reduce_as<plain_codec<std::int32_t>>(*what, stream);
  case troupe::element_type::int64:
    return reduce_as<plain_codec<std::int64_t>>(*what, stream);
  }
  return cudaErrorInvalidValue;
}

int troupe_kernels_pack(const pack_arguments* what, CUstream_st* stream) {
  if (what->count == 0) return 0;
  const dim3 grid{64, what->count < 65535U ? what->count : 65535U};
  pack_kernel<<<grid, threads, 0, stream>>>(*what);
  return launched();
}

int troupe_kernels_sgd(const sgd_arguments* what, CUstream_st* stream) {
  if (what->elements == 0) return 0;
  const troupe::sgd_rule rule{what->scale, what->rate, what->momentum, what->weight_decay};
  const auto blocks = blocks_for(what->elements);
  if (what->momentum_slot == nullptr)
    sgd_kernel<sgd_kind::plain><<<blocks, threads, 0, stream>>>(*what, rule);
  else if (what->nesterov != 0)
    sgd_kernel<sgd_kind::nesterov><<<blocks, threads, 0, stream>>>(*what, rule);
  else
    sgd_kernel<sgd_kind::momentum><<<blocks, threads, 0, stream>>>(*what, rule);
  return launched();
}

int troupe_kernels_adamw(const adamw_arguments* what, CUstream_st* stream) {
  if (what->elements == 0) return 0;
  const troupe::adamw_rule rule{what->scale, what->beta1, what->beta2, what->epsilon,
                                what->keep,  what->rate,  what->root2};
  adamw_kernel<<<blocks_for(what->elements), threads, 0, stream>>>(*what, rule);
  return launched();
}

} // extern "C"
