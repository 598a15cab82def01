// The CUDA runtime as this room calls it: own declarations, and a table of pointers to the functions.
//
// Loaded at run time like NCCL (nccl_api.hpp); compared with the toolkit's header by header_check.cpp.
// Source: cuda_runtime_api.h 13.0.
#pragma once

#include <cstddef>

struct CUstream_st; // CUDA's own names: handles only
struct CUevent_st;

namespace troupe::cuda {

using stream = CUstream_st*;
using event = CUevent_st*;

enum class status : int { success = 0, insufficient_driver = 35, no_device = 100, not_ready = 600 };
enum class copy_kind : int { by_address = 4 }; // the driver sees from the addresses what is where

inline constexpr unsigned int stream_non_blocking = 1; // does not wait for the default stream
inline constexpr unsigned int event_disable_timing = 2;

// F(name in the library, member, result, arguments)
#define TROUPE_CUDA_FUNCTIONS(F)                                                                             \
  F(cudaRuntimeGetVersion, runtime_get_version, status, int*)                                                \
  F(cudaDriverGetVersion, driver_get_version, status, int*)                                                  \
  F(cudaGetDeviceCount, get_device_count, status, int*)                                                      \
  F(cudaSetDevice, set_device, status, int)                                                                  \
  F(cudaGetErrorString, get_error_string, const char*, status)                                               \
  F(cudaGetLastError, get_last_error, status)                                                                \
  F(cudaStreamCreateWithFlags, stream_create, status, stream*, unsigned int)                                 \
  F(cudaStreamDestroy, stream_destroy, status, stream)                                                       \
  F(cudaEventCreateWithFlags, event_create, status, event*, unsigned int)                                    \
  F(cudaEventDestroy, event_destroy, status, event)                                                          \
  F(cudaEventRecord, event_record, status, event, stream)                                                    \
  F(cudaEventQuery, event_query, status, event)                                                              \
  F(cudaMalloc, allocate, status, void**, std::size_t)                                                       \
  F(cudaFree, release, status, void*)                                                                        \
  F(cudaHostAlloc, host_allocate, status, void**, std::size_t, unsigned int)                                 \
  F(cudaFreeHost, host_release, status, void*)                                                               \
  F(cudaMemsetAsync, memset_async, status, void*, int, std::size_t, stream)                                  \
  F(cudaMemcpyAsync, memcpy_async, status, void*, const void*, std::size_t, copy_kind, stream)

struct api {
#define TROUPE_MEMBER(name, member, returns, ...) returns (*member)(__VA_ARGS__){nullptr};
  TROUPE_CUDA_FUNCTIONS(TROUPE_MEMBER)
#undef TROUPE_MEMBER
};

} // namespace troupe::cuda
