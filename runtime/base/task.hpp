// A move-only callable with a fixed inline capacity: posting one never allocates.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

template <class Signature, std::size_t Capacity = 96>
class inline_function;

template <class Result, class... Args, std::size_t Capacity>
class inline_function<Result(Args...), Capacity> {
public:
  inline_function() = default;
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, inline_function>)
      inline_function(F&& callable) { // NOLINT: implicit by intent, as std::function
    using stored = std::decay_t<F>;
    static_assert(sizeof(stored) <= Capacity, "capture less, or capture a pointer");
    static_assert(alignof(stored) <= alignof(std::max_align_t));
    static_assert(std::is_nothrow_move_constructible_v<stored>);
    ::new (static_cast<void*>(storage_)) stored(std::forward<F>(callable));
    call_ = [](void* self, Args... args) -> Result {
      return (*static_cast<stored*>(self))(std::forward<Args>(args)...);
    };
    move_ = [](void* from, void* to) noexcept {
      if (to != nullptr) ::new (to) stored(std::move(*static_cast<stored*>(from)));
      static_cast<stored*>(from)->~stored();
    };
  }
  inline_function(inline_function&& other) noexcept { take(other); }
  inline_function& operator=(inline_function&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  inline_function(const inline_function&) = delete;
  inline_function& operator=(const inline_function&) = delete;
  ~inline_function() { reset(); }

  explicit operator bool() const { return call_ != nullptr; }
  Result operator()(Args... args) {
    invariant(call_ != nullptr, "inline_function: called only while it holds a callable");
    return call_(storage_, std::forward<Args>(args)...);
  }

private:
  void reset() noexcept {
    if (move_ != nullptr) move_(storage_, nullptr);
    call_ = nullptr;
    move_ = nullptr;
  }
  void take(inline_function& other) noexcept {
    if (other.move_ != nullptr) other.move_(other.storage_, storage_);
    call_ = std::exchange(other.call_, nullptr);
    move_ = std::exchange(other.move_, nullptr);
  }

  alignas(std::max_align_t) std::byte storage_[Capacity];
  Result (*call_)(void*, Args...){nullptr};
  void (*move_)(void*, void*) noexcept {nullptr};
};

using task = inline_function<void()>;

} // namespace troupe
