// Send pool: the buffers that frames are copied into until UCX has let go of them.
//
// Owns:     slots of three sizes, made on demand up to a bound in bytes, reused for ever.
// Runs on:  the event loop.
// Fails:    `take` returns nothing when the bound is reached (the caller reports errc::no_credit).
// Invariants:
//   SP-1    after the first burst of its kind, taking and giving back never allocates.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace troupe {

struct ucx_connection;

struct send_slot {
  std::span<std::byte> memory;
  std::size_t bytes{0};             // used of it
  ucx_connection* owner{nullptr};   // whose frame it holds
  send_slot* next{nullptr};         // in the owner's queue, or among the free ones
  std::size_t size_class{0};        // which list it returns to
  std::unique_ptr<std::byte[]> own; // the memory
};

class send_pool {
public:
  explicit send_pool(std::size_t bytes_max);
  // `beyond_bound`: for the few frames that the protocol itself owes; their number is bounded elsewhere.
  [[nodiscard]] send_slot* try_take(std::size_t bytes, bool beyond_bound = false);
  void give_back(send_slot* slot) noexcept;
  [[nodiscard]] std::size_t slots_out() const { return out_; }
  [[nodiscard]] std::size_t bytes_allocated() const { return allocated_; }

private:
  static constexpr std::size_t size_classes = 3;
  static const std::array<std::size_t, size_classes> class_bytes;
  std::size_t bytes_max_;
  std::size_t allocated_{0};
  std::size_t out_{0};
  std::array<send_slot*, size_classes> free_{};
  std::vector<std::unique_ptr<send_slot>> all_;
};

} // namespace troupe
