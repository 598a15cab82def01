// NCCL as this room calls it: own declarations of the functions used, and a table of pointers to them.
//
// The library is loaded at run time, and a build without its header is whole. Where the header is found,
// header_check.cpp compares every line here with it.
// Source: nccl.h 2.28.9; what exists from which version: `nccl_features`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

struct ncclComm;    // NCCL's own names: handles only
struct CUstream_st; // CUDA's

namespace troupe::nccl {

using comm = ncclComm*;
using stream = CUstream_st*;

enum class result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
  eight = 8, // see `text_of`
};

enum class data_type : int { bytes = 1, float32 = 7 };

struct unique_id {
  char bytes[128];
};

// The oldest form of NCCL's configuration: its library fills in what a newer form has more.
struct config {
  std::size_t size{sizeof(config)};
  unsigned int magic{0xcafebeef};
  unsigned int version{21400};
  int blocking{0};
};

inline constexpr int shrink_abort = 1;

// F(name in the library, member, result, arguments)
#define TROUPE_NCCL_FUNCTIONS(F)                                                                             \
  F(ncclGetVersion, get_version, result, int*)                                                               \
  F(ncclGetUniqueId, get_unique_id, result, unique_id*)                                                      \
  F(ncclCommInitRankConfig, comm_init, result, comm*, int, unique_id, int, config*)                          \
  F(ncclCommGetAsyncError, comm_get_async_error, result, comm, result*)                                      \
  F(ncclCommFinalize, comm_finalize, result, comm)                                                           \
  F(ncclCommDestroy, comm_destroy, result, comm)                                                             \
  F(ncclCommAbort, comm_abort, result, comm)                                                                 \
  F(ncclGetErrorString, get_error_string, const char*, result)                                               \
  F(ncclGetLastError, get_last_error, const char*, comm)                                                     \
  F(ncclGroupStart, group_start, result)                                                                     \
  F(ncclGroupEnd, group_end, result)                                                                         \
  F(ncclSend, send, result, const void*, std::size_t, data_type, int, comm, stream)                          \
  F(ncclRecv, recv, result, void*, std::size_t, data_type, int, comm, stream)                                \
  F(ncclAllGather, all_gather, result, const void*, void*, std::size_t, data_type, comm, stream)

// Null where the version is too old.
#define TROUPE_NCCL_NEWER_FUNCTIONS(F)                                                                       \
  F(ncclCommShrink, comm_shrink, result, comm, int*, int, comm*, config*, int)                               \
  F(ncclCommRevoke, comm_revoke, result, comm, int)

struct api {
#define TROUPE_MEMBER(name, member, returns, ...) returns (*member)(__VA_ARGS__){nullptr};
  TROUPE_NCCL_FUNCTIONS(TROUPE_MEMBER)
  TROUPE_NCCL_NEWER_FUNCTIONS(TROUPE_MEMBER)
#undef TROUPE_MEMBER
};

// NC-9: what a version of the library has.
struct features {
  int version{0}; // as ncclGetVersion gives it: 22809 is 2.28.9
  bool usable{false};
  bool shrink{false};
  bool revoke{false};
  bool timeout_code{false}; // result 8 means a time-out; before, no function returned it

  static constexpr int first_usable = 21400; // communicators that do not block
  static constexpr int first_shrink = 22700;
  static constexpr int first_revoke = 22807;
  static constexpr int first_timeout_code = 23000;

  [[nodiscard]] static constexpr features of(int version) {
    return {.version = version,
            .usable = version >= first_usable,
            .shrink = version >= first_shrink,
            .revoke = version >= first_revoke,
            .timeout_code = version >= first_timeout_code};
  }
};

[[nodiscard]] std::string version_text(int version); // "2.28.9"
// What a result means in this version, for messages.
[[nodiscard]] std::string_view text_of(result code, const features& has);

} // namespace troupe::nccl
