// Compares the own declarations with the toolkit's headers. Compiled only where those are found; no code.
#include <cstddef>
#include <type_traits>

#include <cuda_runtime_api.h>

#include "transports/nccl/cuda_api.hpp"
#include "transports/nccl/nccl_api.hpp"

namespace troupe {
namespace {

// May a value of type A be passed where the library expects a B?
template <class A, class B>
constexpr bool alike() {
  if constexpr (std::is_same_v<A, B>)
    return true;
  else if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>)
    return std::is_const_v<std::remove_pointer_t<A>> == std::is_const_v<std::remove_pointer_t<B>> &&
           alike<std::remove_cv_t<std::remove_pointer_t<A>>, std::remove_cv_t<std::remove_pointer_t<B>>>();
  else if constexpr (std::is_enum_v<A>)
    return std::is_enum_v<B> && sizeof(A) == sizeof(B);
  else if constexpr (std::is_class_v<A> && std::is_class_v<B>)
    return std::is_same_v<A, nccl::config> || (sizeof(A) == sizeof(B) && alignof(A) == alignof(B));
  else
    return false;
}

template <class Ours, class Theirs>
constexpr bool same_call = false;
template <class R, class... A, class S, class... B>
constexpr bool same_call<R (*)(A...), S (*)(B...)> = [] {
  if constexpr (sizeof...(A) == sizeof...(B))
    return alike<R, S>() && (... && alike<A, B>());
  else
    return false;
}();

#define TROUPE_CHECK(api, name, member)                                                                      \
  static_assert(same_call<decltype(api::member), decltype(&::name)>, #name " is declared otherwise");
#define TROUPE_CHECK_CUDA(name, member, ...) TROUPE_CHECK(cuda::api, name, member)
TROUPE_CUDA_FUNCTIONS(TROUPE_CHECK_CUDA)

static_assert(static_cast<int>(cuda::status::insufficient_driver) == cudaErrorInsufficientDriver);
static_assert(static_cast<int>(cuda::status::no_device) == cudaErrorNoDevice);
static_assert(static_cast<int>(cuda::status::not_ready) == cudaErrorNotReady);
static_assert(static_cast<int>(cuda::copy_kind::by_address) == cudaMemcpyDefault);
static_assert(cuda::stream_non_blocking == cudaStreamNonBlocking);
static_assert(cuda::event_disable_timing == cudaEventDisableTiming);

} // namespace
} // namespace troupe

#include <nccl.h> // after CUDA's functions were compared: it overloads some of them

namespace troupe {
namespace {

#define TROUPE_CHECK_NCCL(name, member, ...) TROUPE_CHECK(nccl::api, name, member)
TROUPE_NCCL_FUNCTIONS(TROUPE_CHECK_NCCL)
#if NCCL_VERSION_CODE >= 22700
TROUPE_CHECK_NCCL(ncclCommShrink, comm_shrink)
static_assert(nccl::shrink_abort == NCCL_SHRINK_ABORT);
#endif
#if NCCL_VERSION_CODE >= 22807
TROUPE_CHECK_NCCL(ncclCommRevoke, comm_revoke)
#endif

static_assert(static_cast<int>(nccl::result::success) == ncclSuccess);
static_assert(static_cast<int>(nccl::result::remote_error) == ncclRemoteError);
static_assert(static_cast<int>(nccl::result::in_progress) == ncclInProgress);
static_assert(static_cast<int>(nccl::data_type::bytes) == ncclUint8);
static_assert(static_cast<int>(nccl::data_type::float32) == ncclFloat32);

constexpr ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
static_assert(offsetof(nccl::config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(nccl::config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(nccl::config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(nccl::config{}.magic == theirs.magic);

} // namespace
} // namespace troupe
