#include "runtime/train/state_digest.hpp"

#include <array>
#include <cstddef>

namespace troupe {

namespace {

template <class Number>
void add_number(digest_builder& digest, Number value) {
  std::array<std::byte, sizeof(Number)> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  digest.add(bytes);
}

void add_text(digest_builder& digest, std::string_view text) {
  add_number(digest, static_cast<std::uint32_t>(text.size()));
  digest.add(std::as_bytes(std::span{text}));
}

} // namespace

std::string state_digest(const arena_layout& layout, std::span<const float> arena,
                         std::string_view optimizer_text, std::string_view schedule_text,
                         training_position position) {
  digest_builder digest;
  for (std::size_t part = 0; part <= layout.slots.size(); ++part)
    add_part(digest, layout, arena, part);
  add_text(digest, optimizer_text);
  add_text(digest, schedule_text);
  add_number(digest, position.step);
  add_number(digest, position.samples_consumed);
  return digest.finish();
}

} // namespace troupe
