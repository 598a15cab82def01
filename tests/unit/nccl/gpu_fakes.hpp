// Where the FAKE libraries are, and environment variables that tell them what to be.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>

#include "transports/nccl/gpu_libraries.hpp"

namespace troupe::fake {

inline gpu_library_names library_names() {
  const std::string folder = TROUPE_FAKE_GPU_LIBRARIES;
  return {.cuda = {folder + "/libfake_cudart.so"},
          .nccl = {folder + "/libfake_nccl.so"},
          .kernels = {folder + "/libfake_kernels.so"}};
}

class variable {
public:
  variable(std::string name, const char* value)
      : name_{std::move(name)} {
    ::setenv(name_.c_str(), value, 1);
  }
  ~variable() { ::unsetenv(name_.c_str()); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;

private:
  std::string name_;
};

} // namespace troupe::fake
