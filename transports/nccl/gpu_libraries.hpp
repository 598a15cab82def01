// GPU libraries: the CUDA runtime, NCCL and our kernel module, found and checked at run time.
//
// Flow:     names -> load -> tables of functions, or one line that says what is missing and what to do
// Runs on:  any thread, once; some milliseconds.
// Fails:    bad_argument: this machine or installation cannot run on that device. The text is one line and
//           names the library, driver, device or version, and the remedy.
// Invariants:
//   GL-1    nothing of a GPU is needed to build the program or to run it on CPUs.
//   GL-2    a table is complete for its version (NC-9), or loading fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "transports/nccl/cuda_api.hpp"
#include "transports/nccl/kernel_api.hpp"
#include "transports/nccl/nccl_api.hpp"

namespace troupe {

// A path in these variables is tried instead of the names below: for installations elsewhere, and for tests.
inline constexpr const char* cuda_library_variable = "TROUPE_CUDA_LIBRARY";
inline constexpr const char* nccl_library_variable = "TROUPE_NCCL_LIBRARY";
inline constexpr const char* kernels_library_variable = "TROUPE_KERNELS_LIBRARY";

// Names that are tried in turn.
struct gpu_library_names {
  std::vector<std::string> cuda{"libcudart.so.13", "libcudart.so.12"};
  std::vector<std::string> nccl{"libnccl.so.2"};
  std::vector<std::string> kernels{beside_the_program("libtroupe_kernels.so")};

  // The defaults, or what the variables say.
  [[nodiscard]] static gpu_library_names from_environment();
  // In the program's folder, then in ../lib beside that, then wherever the system looks.
  [[nodiscard]] static std::vector<std::string> beside_the_program(const std::string& name);
};

[[nodiscard]] std::string cuda_version_text(int version); // 13000: "13.0"

struct gpu_libraries {
  cuda::api cuda;
  nccl::api nccl;
  nccl::features has;
  kernels::api kernels;
  int cuda_version{0};   // of the runtime: 13000 is 13.0
  int driver_version{0}; // the newest CUDA that the driver can run
  int devices{0};        // of this machine
  bool fake{false};      // one of them says that it is a fake: results say so, too

  // Everything for device `index`.
  [[nodiscard]] static expected<gpu_libraries> load(const gpu_library_names& names, std::uint32_t index);
  // NCCL alone: for a director, whose machine may have no GPU.
  [[nodiscard]] static expected<gpu_libraries> load_nccl(const gpu_library_names& names);
};

} // namespace troupe
