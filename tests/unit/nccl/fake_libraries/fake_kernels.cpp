// libfake_kernels.so: the kernel module's functions as plain code on a stream of the FAKE CUDA runtime.
#include <functional>

#include "runtime/train/update_rules.hpp"
#include "tests/unit/nccl/plain_kernels.hpp"
#include "transports/nccl/cuda_api.hpp"

extern "C" troupe::cuda::status cudaLaunchHostFunc(CUstream_st* stream, void (*function)(void*), void* data);

namespace {

using namespace troupe::kernels;

template <class Arguments>
int launch(CUstream_st* stream, const Arguments& what, void (*run)(const Arguments&)) {
  struct call {
    Arguments what;
    void (*run)(const Arguments&);
  };
  return static_cast<int>(cudaLaunchHostFunc(
      stream,
      [](void* data) {
        const auto* const one = static_cast<call*>(data);
        one->run(one->what);
        delete one;
      },
      new call{what, run}));
}

} // namespace

extern "C" {

int troupe_kernels_version() {
  return api_version * 100 + 13;
}
int troupe_kernels_sum(const sum_arguments* what, CUstream_st* stream) {
  return launch(stream, *what, plain::sum);
}
int troupe_kernels_reduce(const reduce_arguments* what, CUstream_st* stream) {
  return launch(stream, *what, plain::reduce);
}
int troupe_kernels_pack(const pack_arguments* what, CUstream_st* stream) {
  return launch(stream, *what, plain::pack);
}
int troupe_kernels_sgd(const sgd_arguments* what, CUstream_st* stream) {
  return launch(stream, *what, plain::sgd);
}
int troupe_kernels_adamw(const adamw_arguments* what, CUstream_st* stream) {
  return launch(stream, *what, plain::adamw);
}

} // extern "C"
