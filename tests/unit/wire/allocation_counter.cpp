// Counts allocations of this test program.
#include "tests/unit/wire/allocation_counter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> count{0};
} // namespace

std::size_t allocations_so_far() {
  return count.load();
}

void* operator new(std::size_t bytes) {
  count.fetch_add(1);
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
