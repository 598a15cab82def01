#include "transports/nccl/dynamic_library.hpp"

#include <dlfcn.h>

namespace troupe {

expected<dynamic_library> dynamic_library::open(std::span<const std::string> names) {
  std::string reason = "no name was given";
  for (const auto& name : names) {
    if (void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
      return dynamic_library{handle, name};
    const char* const said = ::dlerror();
    if (&name == &names.front() && said != nullptr) reason = said;
  }
  return error{errc::not_found, reason};
}

void* dynamic_library::find(const char* symbol) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, symbol);
}

} // namespace troupe
