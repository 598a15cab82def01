// Counting memory: counts the calls of malloc and its kin in the program that it is linked into.
//
// For measuring only. `operator new` of the standard library calls malloc, C libraries too, so that nothing
// is left out. Memory comes from the C library as always; giving it back needs no counting.
#include <atomic>
#include <cerrno>
#include <cstddef>

#include <unistd.h>

#include "runtime/host/allocation_hook.hpp"

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

std::atomic<std::uint64_t> of_main_thread{0};
std::atomic<std::uint64_t> of_others{0};

void count() {
  static thread_local const bool main_thread = ::gettid() == ::getpid();
  (main_thread ? of_main_thread : of_others).fetch_add(1, std::memory_order_relaxed);
}

} // namespace

extern "C" {

void* malloc(std::size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t elements, std::size_t bytes) {
  count();
  return __libc_calloc(elements, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  count();
  return __libc_realloc(memory, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count();
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

void troupe_allocations(std::uint64_t* main_thread, std::uint64_t* others) {
  *main_thread = of_main_thread.load(std::memory_order_relaxed);
  *others = of_others.load(std::memory_order_relaxed);
}
}
