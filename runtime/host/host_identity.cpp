#include "runtime/host/host_identity.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

namespace troupe {
namespace {

std::string only_this() {
  char host[65]{};
  (void)::gethostname(host, sizeof host - 1);
  return std::string{host} + " " + std::to_string(::getpid());
}

std::string boot() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string id;
  file >> id;
  return id.empty() ? only_this() : id.substr(0, 64);
}

std::string process_namespace() {
  std::error_code failed;
  const auto name = std::filesystem::read_symlink("/proc/self/ns/pid", failed).string(); // pid:[4026531836]
  return failed ? only_this() : name.substr(0, 64);
}

} // namespace

std::string host_identity() {
  return boot() + "/" + process_namespace() + "/" + std::to_string(::geteuid());
}

} // namespace troupe
