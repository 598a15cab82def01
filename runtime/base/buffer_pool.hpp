// Buffer pool: a fixed number of equal buffers, allocated and touched once, lent out as leases.
//
// Owns:     `count` buffers of `bytes_each`, aligned to 64 bytes.
// Runs on:  any thread; lending and returning take a short lock and never allocate.
// Fails:    `try_lend` returns an empty lease when all are out (the caller holds back: that is the credit).
// Invariants:
//   BP-1    a buffer is lent to one lease at a time.
//   BP-2    a pool outlives its leases (each lease shares ownership of the pool's memory).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace troupe {

class buffer_pool;

class lease {
public:
  lease() = default;
  lease(lease&&) noexcept = default;
  lease& operator=(lease&& other) noexcept;
  ~lease() { release(); }

  explicit operator bool() const { return pool_ != nullptr; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  void release() noexcept; // returns the buffer early

private:
  friend class buffer_pool;
  struct shared;
  lease(std::shared_ptr<shared> pool, std::size_t index, std::span<std::byte> bytes);
  std::shared_ptr<shared> pool_;
  std::size_t index_{0};
  std::span<std::byte> bytes_;
};

class buffer_pool {
public:
  buffer_pool(std::size_t count, std::size_t bytes_each);
  ~buffer_pool();
  buffer_pool(buffer_pool&&) noexcept;
  buffer_pool& operator=(buffer_pool&&) noexcept;

  [[nodiscard]] lease try_lend();
  [[nodiscard]] std::size_t available() const;
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t bytes_each() const;

private:
  std::shared_ptr<lease::shared> shared_;
};

// Memory mapped and touched once, 64-byte aligned, returned to the system on destruction. Zeroed.
class touched_memory {
public:
  touched_memory() = default;
  explicit touched_memory(std::size_t bytes);
  ~touched_memory();
  touched_memory(touched_memory&& other) noexcept;
  touched_memory& operator=(touched_memory&& other) noexcept;
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] std::span<T> as() const {
    return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

private:
  std::span<std::byte> bytes_;
};

} // namespace troupe
