#include "runtime/host/staging_memfd.hpp"

#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/invariant.hpp"
#include "runtime/host/system_error.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe {
namespace {

// F_SEAL_WRITE would be refused (EBUSY) for as long as the kernel holds a page for itself, as while it moves
// memory together. Without it no new writer can come; the only one there was, the draft, has unmapped.
constexpr int seals_required = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;

class mapping {
public:
  mapping() = default;
  mapping(int fd, std::size_t bytes, int protection, int flags) {
    void* memory = ::mmap(nullptr, bytes, protection, MAP_SHARED | flags, fd, 0);
    if (memory != MAP_FAILED) bytes_ = {static_cast<std::byte*>(memory), bytes};
  }
  mapping(mapping&& other) noexcept
      : bytes_{std::exchange(other.bytes_, {})} {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapping() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }
  explicit operator bool() const { return !bytes_.empty(); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

private:
  std::span<std::byte> bytes_;
};

class memfd_staged final : public staged_memory {
public:
  memfd_staged(unique_fd fd, mapping memory, std::string locator)
      : fd_{std::move(fd)}
      , memory_{std::move(memory)}
      , locator_{std::move(locator)} {}
  [[nodiscard]] std::span<const std::byte> bytes() const override { return memory_.bytes(); }
  [[nodiscard]] std::string locator() const override { return locator_; }
  [[nodiscard]] int descriptor() const override { return fd_.get(); }

private:
  unique_fd fd_; // held by the owner only: the locator names it
  mapping memory_;
  std::string locator_;
};

class memfd_draft final : public staging_draft {
public:
  memfd_draft(std::string name, unique_fd fd, mapping memory)
      : name_{std::move(name)}
      , fd_{std::move(fd)}
      , memory_{std::move(memory)} {}
  [[nodiscard]] std::span<std::byte> bytes() override { return memory_.bytes(); }
  [[nodiscard]] expected<std::shared_ptr<const staged_memory>> seal() override {
    invariant(static_cast<bool>(memory_), "staging: a draft is sealed once");
    const std::size_t size = memory_.bytes().size();
    { const mapping gone = std::move(memory_); } // the last writable one: the seals keep out new ones only
    if (::fcntl(fd_.get(), F_ADD_SEALS, seals_required | F_SEAL_SEAL) != 0)
      return error{errc::storage_failed,
                   "dataset '" + name_ + "': cannot seal its memory: " + system_text(errno)};
    mapping readable{fd_.get(), size, PROT_READ, 0};
    if (!readable)
      return error{errc::storage_full,
                   "dataset '" + name_ + "': cannot map its memory: " + system_text(errno)};
    auto locator = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get());
    return std::shared_ptr<const staged_memory>{
        std::make_shared<memfd_staged>(std::move(fd_), std::move(readable), std::move(locator))};
  }

private:
  std::string name_;
  unique_fd fd_;
  mapping memory_;
};

// A short form of the name for the system's listings: memfd names end at 249 bytes.
std::string listing_name(const std::string& name) {
  return "troupe-dataset-" + name.substr(0, 128);
}

} // namespace

expected<std::unique_ptr<staging_draft>> memfd_staging::begin(const std::string& name, std::size_t bytes) {
  invariant(bytes > 0, "staging: a draft has at least one byte");
  unique_fd fd{::memfd_create(listing_name(name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!fd) return error{errc::storage_failed, "dataset '" + name + "': memfd_create: " + system_text(errno)};
  // Reserving first turns "no memory left" into an error here, where it would be a SIGBUS at the first write.
  if (const int failed = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); failed != 0)
    return error{errc::storage_full, "dataset '" + name + "': no " + std::to_string(bytes) +
                                         " bytes of shared memory: " + system_text(failed)};
  mapping memory{fd.get(), bytes, PROT_READ | PROT_WRITE, MAP_POPULATE};
  if (!memory)
    return error{errc::storage_full, "dataset '" + name + "': cannot map " + std::to_string(bytes) +
                                         " bytes: " + system_text(errno)};
  return std::unique_ptr<staging_draft>{
      std::make_unique<memfd_draft>(name, std::move(fd), std::move(memory))};
}

expected<std::shared_ptr<const staged_memory>> memfd_staging::open(const std::string& locator) {
  const auto failed = [&locator](errc code, std::string_view text) {
    return error{code, "staged dataset '" + locator + "': " + std::string{text}};
  };
  if (!locator.starts_with("/proc/"))
    return failed(errc::bad_argument, "accepted is a locator /proc/PID/fd/N");
  const unique_fd fd{::open(locator.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!fd) return failed(errc::not_found, "its owner is gone: " + system_text(errno));
  // Without the seals another process could change or cut off what is being read (ST-1).
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & seals_required) != seals_required)
    return failed(errc::corrupt, "not sealed memory");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || status.st_size <= 0) return failed(errc::corrupt, "empty");
  // Not populated: that would cost a replacement process 1.3 ms for 45 MiB before its first step. The reader
  // thread maps what it reads, 16 pages a fault.
  mapping memory{fd.get(), static_cast<std::size_t>(status.st_size), PROT_READ, 0};
  if (!memory) return failed(errc::storage_full, "cannot be mapped: " + system_text(errno));
  return std::shared_ptr<const staged_memory>{
      std::make_shared<memfd_staged>(unique_fd{}, std::move(memory), locator)};
}

} // namespace troupe
