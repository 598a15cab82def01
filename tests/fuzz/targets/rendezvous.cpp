// Rendezvous: frames of one stream as either side cuts and reads them, and the bodies behind their proofs.
#include <algorithm>

#include "tests/fuzz/targets.hpp"
#include "transports/rendezvous/frame_cutter.hpp"
#include "transports/rendezvous/limits.hpp"

namespace troupe::fuzz {
namespace {

constexpr std::string_view token = "0123456789abcdef0123456789abcdef";

std::optional<exchange_frame> next_frame(input& given, std::size_t bytes_max) {
  frame_cutter cutter{bytes_max};
  while (!given.empty()) {
    const auto room = cutter.room();
    const auto bytes = std::min(room.size(), given.size());
    std::ranges::copy(given.first(bytes), room.begin());
    given = given.subspan(bytes);
    auto frame = cutter.filled(bytes);
    require(frame || frame.failure().code == errc::refused, "RV-2: a malformed frame is refused");
    if (!frame) return std::nullopt;
    if (*frame) return std::move(**frame);
  }
  return std::nullopt;
}

// As each side reads: a frame at a time, with its limit.
void run_stream(input given, bool server) {
  constexpr unsigned frames_max = 8;
  for (unsigned count = 0; count < frames_max; ++count) {
    const auto frame = next_frame(given, !server      ? limits::rendezvous_frame_bytes_max
                                         : count == 0 ? limits::rendezvous_first_frame_bytes_max
                                                      : limits::rendezvous_offer_bytes_max);
    if (!frame) return;
    (void)nonce_of(*frame);
    const auto purpose = server ? proof_purpose::offer : proof_purpose::answer;
    require(!same_proof(prove(token, purpose, {}, frame->body), frame->proof) || frame->proof.size() == 32,
            "a proof has its size");
    if (server)
      (void)decode_offer(frame->body); // as if it had been proved
    else
      (void)decode_answer(frame->body);
  }
}

void run_offer(input given) {
  const auto offer = decode_offer(bytes_of(given));
  if (!offer) return;
  const auto again = decode_offer(encode_offer(*offer));
  require(again && again->incarnation == offer->incarnation && again->host == offer->host &&
              again->program == offer->program && again->slot == offer->slot && again->pid == offer->pid &&
              again->address == offer->address,
          "an offer that was read is written and read alike");
}

void run_answer(input given) {
  const auto answer = decode_answer(bytes_of(given));
  if (!answer) return;
  const auto again = decode_answer(encode_answer(answer));
  require(again && again->job == answer->job && again->address == answer->address &&
              again->settings == answer->settings,
          "an answer that was read is written and read alike");
}

void run(input given) {
  switch (take_choice(given, 4)) {
  case 0:
    run_stream(given, true);
    return;
  case 1:
    run_stream(given, false);
    return;
  case 2:
    run_offer(given);
    return;
  default:
    run_answer(given);
  }
}

bytes stream(unsigned choice, const std::vector<wire_bytes>& frames) {
  bytes made{static_cast<std::byte>(choice)};
  for (const auto& frame : frames)
    made.insert(made.end(), frame.begin(), frame.end());
  return made;
}

std::vector<bytes> seeds() {
  const auto offer = encode_offer({.incarnation = {1, 2},
                                   .pid = 42,
                                   .host = "host-a",
                                   .program = "fashion_mnist",
                                   .slot = 3,
                                   .address = peer_address(24, std::byte{7})});
  join_answer joined;
  joined.job = {5, 6};
  joined.director = {7, 8};
  joined.address = peer_address(24, std::byte{9});
  joined.settings = "opaque";
  const auto answer = encode_answer(joined);
  const auto version = rendezvous_version;
  const auto hello = encode_nonce(version, exchange_step::hello, {});
  const auto challenge = encode_nonce(version, exchange_step::challenge, {});
  const auto refusal = encode_refusal(version, {errc::wrong_version, "speaks another version"});
  const auto offered =
      encode_signed(version, exchange_step::offer, offer, prove(token, proof_purpose::offer, {}, offer));
  const auto answered =
      encode_signed(version, exchange_step::answer, answer, prove(token, proof_purpose::answer, {}, answer));
  return {stream(0, {hello, offered}),
          stream(1, {challenge, answered}),
          stream(1, {refusal}),
          chosen(2, offer),
          chosen(3, answer),
          chosen(3, encode_answer(error{errc::wrong_program, "this job runs another"}))};
}

} // namespace

const target rendezvous_target{"rendezvous", run, seeds, 6000};

} // namespace troupe::fuzz
