// Shared segment: its header as another process may have left it, and descriptors of it as text (SG-1).
#include "transports/shm/segment.hpp"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

constexpr collective_shape shape{.generation = generation_id{3}, .world = 2, .shards = 4, .elements = 64};

void run(input given) {
  const auto choice = take_choice(given, 2);
  auto made = segment::create(shape);
  if (!made) return; // no memory left on this machine
  const auto own = (*made)->descriptor();
  if (choice == 0) {
    (void)segment::open(text_of(given), shape);
    return;
  }
  auto& header = (*made)->header();
  const bytes sound = bytes_of(std::as_bytes(std::span{&header, 1}));
  const auto words_at = offsetof(segment_header, words);
  std::memcpy(reinterpret_cast<std::byte*>(&header), given.data(), std::min(given.size(), sizeof header));
  const bytes changed = bytes_of(std::as_bytes(std::span{&header, 1}));
  const auto opened = segment::open(own, shape);
  const auto identity = offsetof(segment_header, bytes) + sizeof header.bytes;
  require(identity <= words_at, "the meeting words come last");
  require(opened.has_value() == std::equal(sound.begin(),
                                           sound.begin() + static_cast<std::ptrdiff_t>(identity),
                                           changed.begin()),
          "SG-1: a member uses a segment only if its header names the same shape");
}

std::vector<bytes> seeds() {
  const auto made = segment::create(shape);
  if (!made) return {};
  const auto header = std::as_bytes(std::span{&(*made)->header(), 1});
  // The process id, the number and the inode differ from run to run: such a text is of another process.
  return {chosen(1, header.first(offsetof(segment_header, words))),
          chosen(0, bytes_of("shm:/proc/1/fd/3:16384:3:77")),
          chosen(0, bytes_of("shm:/proc/self/fd/0:0:3:1"))};
}

} // namespace

const target segment_target{"segment", run, seeds, 2000};

} // namespace troupe::fuzz
