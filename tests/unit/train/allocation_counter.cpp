#include "tests/unit/train/allocation_counter.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

// The linker redirects calls of the C functions to the wrappers (--wrap, see CMakeLists.txt).
extern "C" {
void* __real_malloc(std::size_t bytes);
void* __real_calloc(std::size_t count, std::size_t bytes);
void* __real_realloc(void* memory, std::size_t bytes);
void* __real_aligned_alloc(std::size_t alignment, std::size_t bytes);
int __real_posix_memalign(void** memory, std::size_t alignment, std::size_t bytes);
}

namespace {

std::atomic<std::uint64_t> counted{0}; // replaced allocation functions leave no other place for it

void* count_new(std::size_t bytes) {
  ++counted;
  void* const memory = __real_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

void* count_new(std::size_t bytes, std::align_val_t alignment) {
  ++counted;
  const auto unit = static_cast<std::size_t>(alignment);
  void* const memory = __real_aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

} // namespace

extern "C" {
void* __wrap_malloc(std::size_t bytes) {
  ++counted;
  return __real_malloc(bytes);
}
void* __wrap_calloc(std::size_t count, std::size_t bytes) {
  ++counted;
  return __real_calloc(count, bytes);
}
void* __wrap_realloc(void* memory, std::size_t bytes) {
  ++counted;
  return __real_realloc(memory, bytes);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ++counted;
  return __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  ++counted;
  return __real_posix_memalign(memory, alignment, bytes);
}
}

void* operator new(std::size_t bytes) {
  return count_new(bytes);
}
void* operator new[](std::size_t bytes) {
  return count_new(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return count_new(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return count_new(bytes, alignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace troupe::testing {

std::uint64_t allocations() {
  return counted.load();
}

} // namespace troupe::testing
