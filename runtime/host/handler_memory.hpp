// Memory for one asynchronous operation at a time, so that starting it again and again never allocates.
//
// Asio frees an operation's memory before it calls the handler, so one block serves an operation that is
// restarted by its own handler. Should two ever overlap, the second one falls back to the heap.
#pragma once

#include <cstddef>
#include <new>

namespace troupe {

class handler_memory {
public:
  handler_memory() = default;
  handler_memory(const handler_memory&) = delete;
  handler_memory& operator=(const handler_memory&) = delete;

  [[nodiscard]] void* take(std::size_t bytes) {
    if (in_use_ || bytes > sizeof(storage_)) return ::operator new(bytes);
    in_use_ = true;
    return storage_;
  }
  void give_back(void* memory) noexcept {
    if (memory == storage_)
      in_use_ = false;
    else
      ::operator delete(memory);
  }

private:
  alignas(std::max_align_t) std::byte storage_[256];
  bool in_use_{false};
};

// The allocator that Asio finds through `boost::asio::bind_allocator`.
template <class T>
class handler_allocator {
public:
  using value_type = T;
  explicit handler_allocator(handler_memory& memory)
      : memory_{&memory} {}
  template <class U>
  handler_allocator(const handler_allocator<U>& other)
      : memory_{other.memory()} {}

  [[nodiscard]] T* allocate(std::size_t count) { return static_cast<T*>(memory_->take(count * sizeof(T))); }
  void deallocate(T* block, std::size_t) noexcept { memory_->give_back(block); }
  [[nodiscard]] handler_memory* memory() const { return memory_; }
  template <class U>
  bool operator==(const handler_allocator<U>& other) const {
    return memory_ == other.memory();
  }

private:
  handler_memory* memory_;
};

} // namespace troupe
