#include "bench/collective/rank_board.hpp"

#include <algorithm>

#include <sched.h>

namespace troupe::bench {
namespace {

constexpr unsigned pauses = 50; // looks before the processor is given to somebody else

} // namespace

std::size_t rank_board::bytes_for(std::uint32_t ranks, std::uint32_t iterations) {
  return sizeof(head) + std::size_t{ranks} * iterations * sizeof(std::int64_t);
}

rank_board::rank_board(void* memory, std::uint32_t ranks, std::uint32_t iterations)
    : head_{static_cast<head*>(memory)}
    , times_{reinterpret_cast<std::int64_t*>(static_cast<std::byte*>(memory) + sizeof(head))}
    , ranks_{ranks}
    , iterations_{iterations} {}

void rank_board::align() {
  const auto target = ++aligned_ * ranks_;
  head_->arrived.fetch_add(1);
  for (unsigned looks = 0; head_->arrived.load() < target; ++looks) {
    if (looks >= pauses) ::sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

void rank_board::count_from(std::uint32_t iteration) {
  head_->first.store(iteration);
}

bool rank_board::counts(std::uint32_t iteration) const {
  const auto first = first_counted();
  return first != 0 && iteration >= first;
}

std::uint32_t rank_board::first_counted() const {
  return head_->first.load();
}

std::span<std::int64_t> rank_board::times_of(std::uint32_t rank) const {
  return {times_ + std::size_t{rank} * iterations_, iterations_};
}

std::vector<double> rank_board::slowest_us() const {
  std::vector<double> out(iterations_, 0);
  for (std::uint32_t rank = 0; rank < ranks_; ++rank)
    for (std::uint32_t i = 0; i < iterations_; ++i)
      out[i] = std::max(out[i], static_cast<double>(times_of(rank)[i]) / 1000);
  return out;
}

} // namespace troupe::bench
