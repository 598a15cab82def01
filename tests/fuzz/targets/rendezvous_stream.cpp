// The bytes of a rendezvous's stream in pieces of any size: the same frames come out as in one piece (RV-5).
#include <algorithm>

#include "tests/fuzz/targets.hpp"
#include "transports/rendezvous/frame_cutter.hpp"
#include "transports/rendezvous/limits.hpp"

namespace troupe::fuzz {
namespace {

struct outcome {
  std::vector<exchange_frame> frames;
  std::string refusal; // of the frame after them
  std::size_t taken{0};
};

// `piece(at)`: how much arrives at once behind `at` bytes.
template <class Piece>
outcome cut(input stream, bool server, Piece piece) {
  constexpr std::size_t frames_max = 8;
  outcome found;
  while (found.frames.size() < frames_max) {
    frame_cutter cutter{!server                ? limits::rendezvous_frame_bytes_max
                        : found.frames.empty() ? limits::rendezvous_first_frame_bytes_max
                                               : limits::rendezvous_offer_bytes_max};
    for (;;) {
      const auto room = cutter.room();
      require(!room.empty(), "there is room until there is a frame");
      require(room.size() <= limits::rendezvous_frame_bytes_max, "RV-5: room is bounded");
      const auto left = stream.subspan(found.taken);
      const auto bytes = std::min({room.size(), left.size(), piece(found.taken)});
      if (bytes == 0) return found;
      std::ranges::copy(left.first(bytes), room.begin());
      found.taken += bytes;
      auto frame = cutter.filled(bytes);
      if (!frame) {
        require(frame.failure().code == errc::refused, "RV-2: a malformed frame is refused");
        found.refusal = frame.failure().text;
        return found;
      }
      if (!*frame) continue;
      found.frames.push_back(std::move(**frame));
      break;
    }
  }
  return found;
}

bool same(const exchange_frame& a, const exchange_frame& b) {
  return a.version == b.version && a.step == b.step && a.body == b.body && a.proof == b.proof &&
         a.refusal.text == b.refusal.text;
}

void run(input given) {
  const bool server = take_choice(given, 2) == 0;
  const auto salt = take_choice(given, 256);
  const auto whole = cut(given, server, [&](std::size_t) { return given.size(); });
  const auto pieces = cut(given, server, [&](std::size_t at) {
    return std::size_t{1} + ((at * 31 + salt) * 0x9e3779b9U >> 7U) % (1 + salt % 97);
  });
  require(whole.taken == pieces.taken && whole.refusal == pieces.refusal &&
              std::ranges::equal(whole.frames, pieces.frames, same),
          "RV-5: pieces of any size give the same frames");
}

std::vector<bytes> seeds() {
  const auto version = rendezvous_version;
  const wire_bytes body(48, std::byte{7});
  const auto hello = encode_nonce(version, exchange_step::hello, {});
  const auto challenge = encode_nonce(version, exchange_step::challenge, {});
  const auto refusal = encode_refusal(version, {errc::wrong_version, "speaks another version"});
  const auto stream = [](unsigned side, unsigned salt, std::initializer_list<wire_bytes> frames) {
    bytes made{static_cast<std::byte>(side), static_cast<std::byte>(salt)};
    for (const auto& frame : frames)
      made.insert(made.end(), frame.begin(), frame.end());
    return made;
  };
  return {stream(0, 0, {hello, encode_signed(version, exchange_step::offer, body, {})}),
          stream(1, 5, {challenge, encode_signed(version, exchange_step::answer, body, {})}),
          stream(1, 96, {refusal, challenge, refusal}), stream(0, 200, {hello, hello, hello})};
}

} // namespace

const target rendezvous_stream_target{"rendezvous_stream", run, seeds, 6000};

} // namespace troupe::fuzz
