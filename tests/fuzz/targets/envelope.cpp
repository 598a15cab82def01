// Envelope: malformed bytes are refused, views stay inside (EN-2); what decodes encodes to the same (EN-1).
#include "runtime/wire/envelope.hpp"

#include <algorithm>

#include "runtime/base/limits.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void check_inside(const bytes& whole, const void* part, std::size_t count) {
  if (count == 0) return;
  const auto* at = static_cast<const std::byte*>(part);
  require(at >= whole.data() && at + count <= whole.data() + whole.size(), "EN-2: a view stays inside");
}

void run(input given) {
  const auto copy = bytes_of(given); // its storage is aligned
  const auto read = decode(copy);
  if (!read) {
    require(read.failure().code == errc::corrupt, "EN-2: malformed is corrupt");
    return;
  }
  check_inside(copy, read->name.data(), read->name.size());
  check_inside(copy, read->text.data(), read->text.size());
  check_inside(copy, read->body.data(), read->body.size());
  if (encoded_bytes(*read) > limits::envelope_bytes_max) return;
  bytes room(encoded_bytes(*read));
  const auto used = encode(*read, room);
  require(used.has_value(), "EN-1: what was decoded encodes");
  const auto again = decode(input{room}.first(*used));
  require(again && again->kind == read->kind && again->sender == read->sender && again->name == read->name &&
              again->text == read->text && std::ranges::equal(again->body, read->body),
          "EN-1: decode(encode(e)) is e");
}

bytes encoded(const envelope& what) {
  bytes room(encoded_bytes(what));
  room.resize(encode(what, room).value());
  return room;
}

std::vector<bytes> seeds() {
  const auto body = bytes_of("0123456789");
  envelope bare;
  bare.sender = {0, 1};
  envelope full;
  full.job = {1, 2};
  full.sender = {3, 4};
  full.generation = generation_id{5};
  full.kind = envelope_kind::request;
  full.status = exit_status::of(errc::path_lost);
  full.target = 6;
  full.correlation = 7;
  full.type = 8;
  full.name = "prefetcher";
  full.text = "why";
  full.body = body;
  return {encoded(bare), encoded(full)};
}

} // namespace

const target envelope_target{"envelope", run, seeds, 6000};

} // namespace troupe::fuzz
