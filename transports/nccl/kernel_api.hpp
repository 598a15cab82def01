// The kernel module: what libtroupe_kernels.so exports, and a table of pointers to it.
//
// The module is the one thing that links CUDA; nvcc builds it where the toolkit is found (kernels.cu). It is
// loaded at run time. Every function issues on `stream` and returns at once: 0, or CUDA's error.
//
// The same bits as the plain code on the CPU: the sum has additions only, in the order of the program; the
// reductions and updates are the functions of runtime/policy/reduce_rules.hpp and
// runtime/train/update_rules.hpp, compiled without fused multiply-add, with IEEE division and square root,
// and without flushing of small numbers. Outside the promise: the payloads of NaNs, but in reductions (RR-2).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/seams/element_type.hpp"

struct CUstream_st;

namespace troupe::kernels {

inline constexpr int api_version = 2;

// An addition program (canonical_plan.hpp) in postfix form: a slot to push, or `add`.
inline constexpr std::uint32_t add = 0xffff'ffffU;

// All pointers but `step`s are to device memory.
struct sum_arguments {
  const std::uint32_t* program; // [steps]
  std::uint32_t steps;
  const float* const* slots; // to each contribution's part of the slice
  float* result;
  std::size_t elements;
};

// The members' values, element by element (rank_reduction.hpp).
struct reduce_arguments {
  const std::byte* inputs; // of rank r: [elements] at r x stride
  std::size_t stride;      // bytes
  std::uint32_t world;
  element_type type;
  reduce_op op;
  std::byte* result; // [elements]; none of the inputs
  std::size_t elements;
};

struct segment {
  const float* from;
  std::uint64_t into; // element of the flat array
  std::uint64_t elements;
};

struct pack_arguments {
  const segment* segments; // [count], disjoint
  std::uint32_t count;
  float* into;
};

struct sgd_arguments {
  float* parameters;
  float* momentum_slot; // null where momentum is 0
  const float* gradient;
  std::size_t elements;
  float scale;
  float rate;
  float momentum;
  float weight_decay;
  int nesterov;
};

struct adamw_arguments {
  float* parameters;
  float* mean;
  float* variance;
  const float* gradient;
  std::size_t elements;
  float scale;
  float beta1;
  float beta2;
  float epsilon;
  float keep;  // 1 - rate * weight_decay
  float rate;  // divided by the first correction
  float root2; // 1 / root of the second correction
};

// F(name in the module, member, result, arguments)
#define TROUPE_KERNEL_FUNCTIONS(F)                                                                           \
  F(troupe_kernels_version, version, int)                                                                    \
  F(troupe_kernels_sum, sum, int, const sum_arguments*, CUstream_st*)                                        \
  F(troupe_kernels_reduce, reduce, int, const reduce_arguments*, CUstream_st*)                               \
  F(troupe_kernels_pack, pack, int, const pack_arguments*, CUstream_st*)                                     \
  F(troupe_kernels_sgd, sgd, int, const sgd_arguments*, CUstream_st*)                                        \
  F(troupe_kernels_adamw, adamw, int, const adamw_arguments*, CUstream_st*)

struct api {
#define TROUPE_MEMBER(name, member, returns, ...) returns (*member)(__VA_ARGS__){nullptr};
  TROUPE_KERNEL_FUNCTIONS(TROUPE_MEMBER)
#undef TROUPE_MEMBER
};

} // namespace troupe::kernels
