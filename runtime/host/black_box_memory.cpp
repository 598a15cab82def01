#include "runtime/host/black_box_memory.hpp"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/host/system_error.hpp"

namespace troupe {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "words are shared between processes");

constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::shared_ptr<black_box> map(int fd) {
  void* memory = ::mmap(nullptr, sizeof(black_box), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<black_box*>(memory), [](black_box* box) { ::munmap(box, sizeof(black_box)); }};
}

bool is_black_box(int fd) {
  struct stat file {};
  if (fd <= STDERR_FILENO || ::fstat(fd, &file) != 0 || file.st_size != sizeof(black_box)) return false;
  const int found = ::fcntl(fd, F_GET_SEALS);
  return found >= 0 && (found & size_seals) == size_seals;
}

} // namespace

expected<shared_black_box> make_black_box() {
  shared_black_box made;
  made.fd = unique_fd{::memfd_create("troupe-black-box", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!made.fd || ::ftruncate(made.fd.get(), sizeof(black_box)) != 0 ||
      ::fcntl(made.fd.get(), F_ADD_SEALS, size_seals) != 0)
    return file_error("create", "black box", errno);
  made.box = map(made.fd.get());
  if (made.box == nullptr) return file_error("map", "black box", errno);
  ::new (static_cast<void*>(made.box.get())) black_box{};
  return made;
}

expected<std::shared_ptr<black_box>> open_black_box_from_environment() {
  const char* value = std::getenv(black_box_variable);
  if (value == nullptr) return std::make_shared<black_box>();
  const std::string_view text{value};
  int number = -1;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || !is_black_box(number))
    return error{errc::bad_argument, std::string{black_box_variable} + "='" + value +
                                         "' names no black box; it is set by the parent"};
  const unique_fd fd{number};
  auto box = map(fd.get());
  if (box == nullptr) return file_error("map", "black box", errno);
  return box;
}

} // namespace troupe
