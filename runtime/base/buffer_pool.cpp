#include "runtime/base/buffer_pool.hpp"

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "runtime/base/invariant.hpp"

namespace troupe {

touched_memory::touched_memory(std::size_t bytes) {
  if (bytes == 0) return;
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc{};
  bytes_ = {static_cast<std::byte*>(memory), bytes};
}

touched_memory::~touched_memory() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

touched_memory::touched_memory(touched_memory&& other) noexcept
    : bytes_{std::exchange(other.bytes_, {})} {}

touched_memory& touched_memory::operator=(touched_memory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

struct lease::shared {
  shared(std::size_t buffers, std::size_t bytes_of_one)
      : count{buffers}
      , bytes_each{bytes_of_one}
      , stride{(bytes_each + 63) / 64 * 64}
      , memory{count * stride} {
    free.reserve(count);
    for (std::size_t i = count; i > 0; --i)
      free.push_back(i - 1);
  }
  std::size_t count;
  std::size_t bytes_each;
  std::size_t stride;
  touched_memory memory;
  std::mutex mutex;
  std::vector<std::size_t> free;
};

lease::lease(std::shared_ptr<shared> pool, std::size_t index, std::span<std::byte> bytes)
    : pool_{std::move(pool)}
    , index_{index}
    , bytes_{bytes} {}

lease& lease::operator=(lease&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::move(other.pool_);
    index_ = other.index_;
    bytes_ = std::exchange(other.bytes_, {});
  }
  return *this;
}

void lease::release() noexcept {
  if (pool_ == nullptr) return;
  {
    const std::lock_guard lock{pool_->mutex};
    invariant(pool_->free.size() < pool_->count, "BP-1: a buffer is lent to one lease at a time");
    pool_->free.push_back(index_);
  }
  pool_.reset();
  bytes_ = {};
}

buffer_pool::buffer_pool(std::size_t count, std::size_t bytes_each)
    : shared_{std::make_shared<lease::shared>(count, bytes_each)} {}
buffer_pool::~buffer_pool() = default;
buffer_pool::buffer_pool(buffer_pool&&) noexcept = default;
buffer_pool& buffer_pool::operator=(buffer_pool&&) noexcept = default;

lease buffer_pool::try_lend() {
  const std::lock_guard lock{shared_->mutex};
  if (shared_->free.empty()) return {};
  const auto index = shared_->free.back();
  shared_->free.pop_back();
  return {shared_, index, shared_->memory.bytes().subspan(index * shared_->stride, shared_->bytes_each)};
}

std::size_t buffer_pool::available() const {
  const std::lock_guard lock{shared_->mutex};
  return shared_->free.size();
}
std::size_t buffer_pool::count() const {
  return shared_->count;
}
std::size_t buffer_pool::bytes_each() const {
  return shared_->bytes_each;
}

} // namespace troupe
