#include <caf/config.hpp>
#include <capnp/common.h>
#include <openssl/crypto.h>
#include <ucp/api/ucp.h>

#include "cli/doctor/doctor_probe.hpp"
#include "transports/ucx/lanes.hpp"

namespace troupe::doctor {
namespace {

// A version kept as one number, two or three digits a part.
std::string parts(unsigned number, unsigned each) {
  return std::to_string(number / each / each) + "." + std::to_string(number / each % each) + "." +
         std::to_string(number % each);
}

std::string openssl_built() {
  return std::to_string(OPENSSL_VERSION_MAJOR) + "." + std::to_string(OPENSSL_VERSION_MINOR) + "." +
         std::to_string(OPENSSL_VERSION_PATCH);
}

std::string openssl_loaded() {
  return std::to_string(OPENSSL_version_major()) + "." + std::to_string(OPENSSL_version_minor()) + "." +
         std::to_string(OPENSSL_version_patch());
}

// The header names the API; the release is the library's.
std::string ucx_built() {
  return std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR);
}

std::string ucx_loaded() {
  const auto whole = ucx_version();
  return whole.substr(0, whole.rfind('.'));
}

} // namespace

std::vector<library_facts> library_versions() {
  return {{"UCX", ucx_built(), ucx_loaded()},
          {"CAF", parts(CAF_VERSION, 100), {}},
          {"Cap'n Proto", parts(CAPNP_VERSION, 1000), {}},
          {"OpenSSL", openssl_built(), openssl_loaded()}};
}

} // namespace troupe::doctor
