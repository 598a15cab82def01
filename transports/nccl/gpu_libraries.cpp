#include "transports/nccl/gpu_libraries.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "transports/nccl/dynamic_library.hpp"

namespace troupe {

namespace {

error missing(const std::string& what, const std::string& remedy) {
  return {errc::bad_argument, what + "; " + remedy};
}

// The first function that the library lacks.
template <class Api>
expected<void> bind_all(const dynamic_library& from, Api& into);

template <>
expected<void> bind_all(const dynamic_library& from, cuda::api& into) {
#define TROUPE_BIND(name, member, ...)                                                                       \
  if (auto bound = from.bind(#name, into.member); !bound) return bound;
  TROUPE_CUDA_FUNCTIONS(TROUPE_BIND)
  return {};
}

template <>
expected<void> bind_all(const dynamic_library& from, nccl::api& into) {
  TROUPE_NCCL_FUNCTIONS(TROUPE_BIND)
  return {};
}

template <>
expected<void> bind_all(const dynamic_library& from, kernels::api& into) {
  TROUPE_KERNEL_FUNCTIONS(TROUPE_BIND)
  return {};
}
#undef TROUPE_BIND

// Fakes say what they are.
bool is_fake(const dynamic_library& library) {
  int (*said)() = nullptr;
  return library.bind("troupe_fake_library", said).has_value();
}

expected<void> load_cuda(const gpu_library_names& names, gpu_libraries& into) {
  const auto library = dynamic_library::open(names.cuda);
  if (!library)
    return missing("no CUDA runtime (" + library.failure().text + ")",
                   "install the CUDA runtime 12 or 13 where the system finds it");
  if (auto bound = bind_all(*library, into.cuda); !bound)
    return missing("the CUDA runtime is too old (" + bound.failure().text + ")", "install 12 or 13");
  into.fake = into.fake || is_fake(*library);
  (void)into.cuda.runtime_get_version(&into.cuda_version);
  (void)into.cuda.driver_get_version(&into.driver_version);
  if (into.driver_version == 0)
    return missing("no NVIDIA driver is loaded (the CUDA runtime " + cuda_version_text(into.cuda_version) +
                       " is there)",
                   "install the driver");
  return {};
}

expected<void> check_device(gpu_libraries& libraries, std::uint32_t index) {
  const auto counted = libraries.cuda.get_device_count(&libraries.devices);
  const auto devices = libraries.devices;
  if (counted == cuda::status::insufficient_driver)
    return missing("the NVIDIA driver runs CUDA " + cuda_version_text(libraries.driver_version) +
                       " at most, the runtime is " + cuda_version_text(libraries.cuda_version),
                   "install a newer driver or an older runtime");
  if (counted != cuda::status::success && counted != cuda::status::no_device)
    return missing(std::string{"CUDA cannot count its devices: "} + libraries.cuda.get_error_string(counted),
                   "look at the driver's messages");
  if (devices == 0) return missing("this machine has no CUDA device", "run where there is one");
  if (index >= static_cast<std::uint32_t>(devices))
    return missing("no device " + std::to_string(index) + ": this machine has " + std::to_string(devices),
                   "use cuda:0 to cuda:" + std::to_string(devices - 1));
  return {};
}

// NC-9, GL-2
expected<void> bind_newer(const dynamic_library& library, gpu_libraries& into) {
  if (into.has.shrink)
    if (auto bound = library.bind("ncclCommShrink", into.nccl.comm_shrink); !bound) return bound;
  if (into.has.revoke)
    if (auto bound = library.bind("ncclCommRevoke", into.nccl.comm_revoke); !bound) return bound;
  return {};
}

expected<void> load_nccl_into(const gpu_library_names& names, gpu_libraries& into) {
  const auto library = dynamic_library::open(names.nccl);
  if (!library)
    return missing("no NCCL (" + library.failure().text + ")",
                   "install NCCL 2.14 or newer where the system finds it");
  int version = 0;
  if (auto bound = library->bind("ncclGetVersion", into.nccl.get_version); !bound)
    return missing(bound.failure().text, "install NCCL 2.14 or newer");
  if (into.nccl.get_version(&version) != nccl::result::success)
    return missing(library->name() + " does not tell its version", "install NCCL 2.14 or newer");
  into.fake = into.fake || is_fake(*library);
  into.has = nccl::features::of(version);
  if (!into.has.usable)
    return missing("NCCL " + nccl::version_text(version) + " is too old", "install 2.14 or newer");
  auto bound = bind_all(*library, into.nccl);
  if (bound) bound = bind_newer(*library, into);
  if (!bound)
    return missing("NCCL " + nccl::version_text(version) + ": " + bound.failure().text,
                   "install a complete NCCL");
  return {};
}

expected<void> load_kernels(const gpu_library_names& names, gpu_libraries& into) {
  const auto library = dynamic_library::open(names.kernels);
  if (!library)
    return missing("no GPU kernels (" + library.failure().text + ")",
                   "build where the CUDA toolkit (nvcc) is found");
  if (auto bound = bind_all(*library, into.kernels); !bound)
    return missing("other GPU kernels (" + bound.failure().text + ")", "build this version's");
  into.fake = into.fake || is_fake(*library);
  const int found = into.kernels.version();
  const int expected_version = kernels::api_version * 100 + into.cuda_version / 1000;
  if (found != expected_version)
    return missing("GPU kernels of version " + std::to_string(found / 100) + " for CUDA " +
                       std::to_string(found % 100) + ", expected version " +
                       std::to_string(kernels::api_version) + " for CUDA " +
                       std::to_string(into.cuda_version / 1000),
                   "build them with the CUDA that is installed here");
  return {};
}

} // namespace

std::vector<std::string> gpu_library_names::beside_the_program(const std::string& name) {
  std::array<char, 4096> path{};
  const auto length = ::readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view program{path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
  const auto slash = program.rfind('/');
  if (slash == program.npos) return {name};
  const std::string folder{program.substr(0, slash)};
  return {folder + "/" + name, folder + "/../lib/" + name, name};
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

gpu_library_names gpu_library_names::from_environment() {
  gpu_library_names names;
  const auto take = [](const char* variable, std::vector<std::string>& into) {
    const char* const path = std::getenv(variable);
    if (path != nullptr && *path != '\0') into = {path}; // an empty name loads the program itself
  };
  take(cuda_library_variable, names.cuda);
  take(nccl_library_variable, names.nccl);
  take(kernels_library_variable, names.kernels);
  return names;
}

expected<gpu_libraries> gpu_libraries::load(const gpu_library_names& names, std::uint32_t index) {
  gpu_libraries made;
  auto loaded = load_cuda(names, made);
  if (loaded) loaded = check_device(made, index);
  if (loaded) loaded = load_nccl_into(names, made);
  if (loaded) loaded = load_kernels(names, made);
  if (!loaded) return loaded.failure();
  return made;
}

expected<gpu_libraries> gpu_libraries::load_nccl(const gpu_library_names& names) {
  gpu_libraries made;
  if (auto loaded = load_nccl_into(names, made); !loaded) return loaded.failure();
  return made;
}

} // namespace troupe
