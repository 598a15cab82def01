// Segment: the shared memory of one generation's collective, as an anonymous file (memfd).
//
// Nobody can find it by name and the system frees it with its last user, so nothing is left behind however
// the processes end. Members open it through the director's file table (/proc/PID/fd/N).
//
// Layout:   header page(s): identity, meeting words, one arrival line a rank, one set of words a rank group
//           contributions: one slot a tree node, in rank order, each of `stride` bytes
//           result: one slot a sum, or, for small shapes, two sets of exchange slots (shm_communicator.hpp)
//           rank groups, where the shape asks for them: an area each (shm_group.hpp); it costs memory only
//           once its group is made
// Owns:     its mapping, and on the director's side the file.
// Runs on:  any thread; `touch_*` take 8-12 us a page the first time.
// Fails:    bad_argument (not a descriptor, or of another shape), aborted (the generation has ended),
//           storage_failed (memory).
// Invariants:
//   SG-1    a member maps a file only after its seals, size and number were checked, and uses it only after
//           its header named the same generation, world, shards, cuts, elements and group bytes.
//   SG-2    offsets come from the shape that the member was given, never from shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/seams/collective.hpp"
#include "transports/shm/meeting.hpp"

namespace troupe {

struct segment_header {
  std::uint64_t magic;
  std::uint64_t generation;
  std::uint32_t version;
  std::uint32_t world;
  std::uint32_t shards;
  std::uint32_t slots;
  std::uint64_t elements;
  std::uint64_t group_bytes;
  std::uint64_t cuts; // a digest
  std::uint64_t bytes;
  std::atomic<std::uint32_t> groups; // split off so far
  meeting_words words;
};

struct group_words; // group_line.hpp

struct segment_layout {
  std::uint32_t slots{0};   // contributions of all ranks
  std::uint32_t sums{0};    // as canonical_sum::sums
  std::size_t stride{0};    // bytes from one slot to the next
  std::size_t slots_at{0};  // offset of the first contribution
  std::size_t result_at{0}; // offset of the result, or of the first exchange slot
  bool exchanged{false};    // small: two sets of exchange slots instead of one result
  // Rank groups. 0: the shape asks for none.
  std::size_t words_at{0};     // offset of the first group_words
  std::size_t groups_at{0};    // offset of the first group's area
  std::size_t group_stride{0}; // bytes from one area to the next
  std::size_t staging_at{0};   // within an area: its first member's staging
  std::size_t half_bytes{0};   // a member's staging has two halves
  std::size_t bytes{0};        // of the whole segment
};

// errc::bad_argument for an empty or too large shape.
[[nodiscard]] expected<segment_layout> layout_of(const collective_shape& shape);

class segment {
public:
  // Director's side: makes the file, maps the header. errc::storage_failed, bad_argument.
  [[nodiscard]] static expected<std::unique_ptr<segment>> create(const collective_shape& shape);
  // Member's side: maps everything.
  [[nodiscard]] static expected<std::unique_ptr<segment>> open(const std::string& descriptor,
                                                               const collective_shape& shape);
  ~segment();
  segment(const segment&) = delete;
  segment& operator=(const segment&) = delete;

  // What `open` takes in any process of this host and user; director's side.
  [[nodiscard]] const std::string& descriptor() const { return descriptor_; }
  [[nodiscard]] const segment_layout& layout() const { return layout_; }
  [[nodiscard]] segment_header& header() const;
  [[nodiscard]] std::span<arrival_line> lines() const;
  [[nodiscard]] float* at(std::size_t offset) const; // `offset` from the layout
  [[nodiscard]] std::byte* bytes_at(std::size_t offset) const;
  [[nodiscard]] group_words& words_of(std::uint32_t group) const;
  // Ends every wait in this generation, of sums and of groups, made or not. Any thread.
  void abort() noexcept;

  // Makes [offset, offset + bytes) resident: allocated and mapped, contents untouched.
  [[nodiscard]] expected<void> touch(std::size_t offset, std::size_t bytes) const;

private:
  segment(segment_layout layout, std::uint32_t world)
      : layout_{layout}
      , world_{world} {}
  [[nodiscard]] expected<void> map(int file, std::size_t bytes);
  [[nodiscard]] expected<void> check(const collective_shape& shape) const;

  segment_layout layout_;
  std::uint32_t world_;
  std::string descriptor_;
  int file_{-1};
  std::span<std::byte> mapping_;
};

} // namespace troupe
