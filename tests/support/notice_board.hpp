// Notice board: where forked ranks write how they can be reached, and read how the others can.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

#include "runtime/base/invariant.hpp"
#include "runtime/seams/collective.hpp"

namespace troupe::test {

class notice_board {
public:
  explicit notice_board(std::uint32_t world)
      : world_{world}
      , bytes_{sizeof(head) + world * sizeof(note)} {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    invariant(memory_ != MAP_FAILED, "test: memory can be mapped");
    head_ = ::new (memory_) head{};
  }
  ~notice_board() { ::munmap(memory_, bytes_); }
  notice_board(const notice_board&) = delete;
  notice_board& operator=(const notice_board&) = delete;

  // All ranks' notes, once all have written; none after a generous deadline.
  [[nodiscard]] std::vector<collective_member> exchange(std::uint32_t rank, const collective_member& own) {
    auto& mine = notes()[rank];
    invariant(own.address.size() <= sizeof mine.address, "test: an address fits");
    mine.who = own.incarnation;
    mine.size = own.address.size();
    std::memcpy(mine.address, own.address.data(), own.address.size());
    head_->written.fetch_add(1);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (head_->written.load() < world_) {
      if (std::chrono::steady_clock::now() > deadline) return {};
      ::sched_yield();
    }
    std::vector<collective_member> all;
    for (std::uint32_t each = 0; each < world_; ++each) {
      const auto& one = notes()[each];
      all.push_back({one.who, {one.address, one.address + one.size}});
    }
    return all;
  }

private:
  struct head {
    std::atomic<std::uint32_t> written{0};
    std::uint32_t unused{0};
  };
  struct note {
    incarnation_id who;
    std::size_t size;
    std::byte address[4096];
  };
  [[nodiscard]] note* notes() const {
    return reinterpret_cast<note*>(static_cast<std::byte*>(memory_) + sizeof(head));
  }
  std::uint32_t world_;
  std::size_t bytes_;
  void* memory_{nullptr};
  head* head_{nullptr};
};

} // namespace troupe::test
