#include "runtime/session/lane.hpp"

#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/session/limits.hpp"

namespace troupe {
namespace {

std::vector<std::byte> bytes(std::size_t count, std::byte value = std::byte{7}) {
  return std::vector<std::byte>(count, value);
}

std::size_t messages_in(const session_block& block) {
  auto left = block.bytes().subspan(sizeof(session_header));
  std::size_t count = 0;
  while (take_message(left))
    ++count;
  CHECK(left.empty());
  return count;
}

TEST_CASE("lane: messages share a batch until it is sealed or full; numbers ascend (LN-2)") {
  session_blocks blocks;
  lane out{1U << 20};
  for (int i = 0; i < 3; ++i)
    out.add(bytes(100), blocks);
  CHECK(out.next_unsent() == nullptr);
  out.seal();
  out.seal(); // nothing is open
  REQUIRE(out.next_unsent() != nullptr);
  CHECK(out.next_unsent()->sequence == 1);
  CHECK(messages_in(*out.next_unsent()) == 3);
  out.note_sent();
  CHECK(out.next_unsent() == nullptr);
  for (std::size_t filled = 0; filled <= limits::session_block_bytes; filled += 1000)
    out.add(bytes(1000), blocks);
  REQUIRE(out.next_unsent() != nullptr); // full
  CHECK(out.next_unsent()->sequence == 2);
}

TEST_CASE("lane: a message larger than a block has one of its own") {
  session_blocks blocks;
  lane out{1U << 20};
  out.add(bytes(10), blocks);
  out.add(bytes(limits::envelope_bytes_max), blocks);
  out.seal();
  CHECK(messages_in(*out.next_unsent()) == 1);
  out.note_sent();
  CHECK(out.next_unsent()->used == sizeof(session_header) + batched_bytes(limits::envelope_bytes_max));
}

TEST_CASE("lane: what is kept is bounded, and freed by an acknowledgement (LN-1)") {
  session_blocks blocks;
  lane out{4096};
  std::size_t taken = 0;
  while (out.has_room(100)) {
    out.add(bytes(100), blocks);
    ++taken;
  }
  CHECK(out.kept_bytes() <= 4096);
  CHECK(taken == 4096 / batched_bytes(100));
  out.seal();
  out.note_sent();
  REQUIRE(out.acknowledge(1, blocks));
  CHECK(out.kept_bytes() == 0);
  CHECK(out.has_room(100));
}

TEST_CASE("lane: after a lost path it sends again from the oldest one kept (LN-2)") {
  session_blocks blocks;
  lane out{1U << 20};
  for (int i = 0; i < 4; ++i) {
    out.add(bytes(8), blocks);
    out.seal();
    out.note_sent();
  }
  REQUIRE(out.acknowledge(2, blocks));
  REQUIRE(out.acknowledge(1, blocks)); // late: nothing new
  CHECK(out.next_unsent() == nullptr);
  out.rewind();
  REQUIRE(out.next_unsent() != nullptr);
  CHECK(out.next_unsent()->sequence == 3);
  REQUIRE(out.acknowledge(3, blocks)); // before it was sent again
  CHECK(out.next_unsent()->sequence == 4);
}

TEST_CASE("lane: an acknowledgement of what was never sealed is refused") {
  session_blocks blocks;
  lane out{4096};
  out.add(bytes(8), blocks);
  CHECK_FALSE(out.acknowledge(1, blocks));
}

TEST_CASE("lane: a batch is taken in once, and no gap is jumped (LN-3)") {
  lane in{4096};
  CHECK(in.receive(1));
  CHECK_FALSE(in.receive(1));
  CHECK_FALSE(in.receive(3));
  CHECK(in.receive(2));
  CHECK(in.receive(3));
  CHECK(in.received() == 3);
}

TEST_CASE("lane: giving up hands out every message kept, oldest first, then nothing is kept") {
  session_blocks blocks;
  lane out{1U << 20};
  for (unsigned char i = 0; i < 10; ++i) {
    out.add(bytes(3, std::byte{i}), blocks);
    if (i % 4 == 3) out.seal();
  }
  std::vector<std::byte> seen;
  out.give_up([&](std::span<const std::byte> message) {
    CHECK(message.size() == 3);
    seen.push_back(message[0]);
  });
  REQUIRE(seen.size() == 10);
  for (unsigned char i = 0; i < 10; ++i)
    CHECK(seen[i] == std::byte{i});
  CHECK(out.kept_bytes() == 0);
}

} // namespace
} // namespace troupe
