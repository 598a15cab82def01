#include "transports/nccl/nccl_api.hpp"

namespace troupe::nccl {

std::string version_text(int version) {
  // Up to 2.8 a version was major x 1000 + minor x 100 + patch.
  const int major = version < 10000 ? version / 1000 : version / 10000;
  const int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

std::string_view text_of(result code, const features& has) {
  switch (code) {
  case result::success:
    return "success";
  case result::unhandled_cuda_error:
    return "a CUDA call failed";
  case result::system_error:
    return "a system call failed";
  case result::internal_error:
    return "an internal error of NCCL";
  case result::invalid_argument:
    return "invalid argument";
  case result::invalid_usage:
    return "invalid usage";
  case result::remote_error:
    return "a peer ended, or the network to it failed";
  case result::in_progress:
    return "in progress";
  case result::eight:
    return has.timeout_code ? "a time-out inside NCCL" : "a code that this version does not define";
  }
  return "an unknown code";
}

} // namespace troupe::nccl
