#include "transports/rendezvous/exchange.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "transports/rendezvous/limits.hpp"
#include "transports/rendezvous/rendezvous.capnp.h"

namespace troupe {
namespace {

constexpr std::size_t refusal_text_bytes_max = 512;
constexpr int nesting_max = 8;

capnp::Data::Reader wire_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}
wire_bytes bytes_of(capnp::Data::Reader reader) {
  const auto* first = reinterpret_cast<const std::byte*>(reader.begin());
  return {first, first + reader.size()};
}

// `prefix` bytes are left free in front.
wire_bytes flatten(capnp::MallocMessageBuilder& message, std::size_t prefix) {
  const auto words = capnp::messageToFlatArray(message);
  const auto flat = words.asBytes();
  wire_bytes bytes(prefix + flat.size());
  std::memcpy(bytes.data() + prefix, flat.begin(), flat.size());
  return bytes;
}

wire_bytes flatten_frame(capnp::MallocMessageBuilder& message) {
  auto bytes = flatten(message, frame_length_bytes);
  const auto length = static_cast<std::uint32_t>(bytes.size() - frame_length_bytes);
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes;
}

error malformed(std::string_view what) {
  return {errc::refused, std::string{what} + " is malformed"};
}

// Reads `Root` out of bytes that nobody vouches for; `read` may throw kj::Exception, which ends here.
template <class Root, class Result, class Read>
expected<Result> read_message(std::span<const std::byte> bytes, std::string_view what, Read read) {
  if (bytes.empty() || bytes.size() % sizeof(capnp::word) != 0 ||
      bytes.size() > limits::rendezvous_frame_bytes_max)
    return malformed(what);
  try {
    auto words = kj::heapArray<capnp::word>(bytes.size() / sizeof(capnp::word));
    std::memcpy(words.asBytes().begin(), bytes.data(), bytes.size());
    capnp::ReaderOptions options;
    options.traversalLimitInWords = words.size() * 2 + 64;
    options.nestingLimit = nesting_max;
    capnp::FlatArrayMessageReader reader{words, options};
    return read(reader.getRoot<Root>());
  } catch (const kj::Exception&) {
    return malformed(what);
  } catch (const std::exception&) {
    return malformed(what);
  }
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 0x7f; });
}

std::string_view view(capnp::Text::Reader text) {
  return {text.cStr(), text.size()};
}

error read_refusal(rendezvous_wire::Refusal::Reader refusal) {
  const auto code = refusal.getCode();
  const auto text = view(refusal.getText());
  const bool known = code <= static_cast<std::uint16_t>(errc::internal);
  const bool fit = text.size() <= refusal_text_bytes_max && printable(text);
  return {known ? static_cast<errc>(code) : errc::refused, fit ? std::string{text} : "refused"};
}

void write_refusal(rendezvous_wire::Refusal::Builder refusal, const error& why) {
  refusal.setCode(static_cast<std::uint16_t>(why.code));
  auto text = why.text.substr(0, refusal_text_bytes_max);
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, ' ');
  refusal.setText(text.c_str());
}

template <class Id>
void write_id(rendezvous_wire::Id::Builder to, const Id& from) {
  to.setHigh(from.high());
  to.setLow(from.low());
}
template <class Id>
Id read_id(rendezvous_wire::Id::Reader from) {
  return {from.getHigh(), from.getLow()};
}

std::array<std::byte, 32> hmac(std::span<const std::byte> key, std::span<const std::byte> text) {
  std::array<std::byte, 32> mac{};
  unsigned length = 0;
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(mac.data()), &length);
  invariant(made != nullptr && length == mac.size(), "HMAC-SHA256 gives 32 bytes");
  return mac;
}

expected<exchange_frame> read_frame(rendezvous_wire::Frame::Reader wire) {
  exchange_frame frame;
  frame.version = wire.getVersion();
  const auto sign = [&frame](exchange_step step, rendezvous_wire::Signed::Reader body) {
    frame.step = step;
    frame.body = bytes_of(body.getBody());
    frame.proof = bytes_of(body.getProof());
  };
  switch (wire.which()) {
  case rendezvous_wire::Frame::HELLO:
    frame.step = exchange_step::hello;
    frame.body = bytes_of(wire.getHello());
    return frame;
  case rendezvous_wire::Frame::CHALLENGE:
    frame.step = exchange_step::challenge;
    frame.body = bytes_of(wire.getChallenge());
    return frame;
  case rendezvous_wire::Frame::OFFER:
    sign(exchange_step::offer, wire.getOffer());
    return frame;
  case rendezvous_wire::Frame::ANSWER:
    sign(exchange_step::answer, wire.getAnswer());
    return frame;
  case rendezvous_wire::Frame::REFUSAL:
    frame.step = exchange_step::refusal;
    frame.refusal = read_refusal(wire.getRefusal());
    return frame;
  }
  return malformed("a rendezvous frame");
}

} // namespace

wire_bytes encode_nonce(std::uint32_t version, exchange_step step, const rendezvous_nonce& nonce) {
  capnp::MallocMessageBuilder message;
  auto frame = message.initRoot<rendezvous_wire::Frame>();
  frame.setVersion(version);
  if (step == exchange_step::hello)
    frame.setHello(wire_data(nonce));
  else
    frame.setChallenge(wire_data(nonce));
  return flatten_frame(message);
}

wire_bytes encode_signed(std::uint32_t version, exchange_step step, std::span<const std::byte> body,
                         const rendezvous_proof& proof) {
  capnp::MallocMessageBuilder message;
  auto frame = message.initRoot<rendezvous_wire::Frame>();
  frame.setVersion(version);
  auto part = step == exchange_step::offer ? frame.initOffer() : frame.initAnswer();
  part.setBody(wire_data(body));
  part.setProof(wire_data(proof));
  return flatten_frame(message);
}

wire_bytes encode_refusal(std::uint32_t version, const error& why) {
  capnp::MallocMessageBuilder message;
  auto frame = message.initRoot<rendezvous_wire::Frame>();
  frame.setVersion(version);
  write_refusal(frame.initRefusal(), why);
  return flatten_frame(message);
}

std::size_t frame_length(std::span<const std::byte, frame_length_bytes> prefix) {
  std::uint32_t length = 0;
  std::memcpy(&length, prefix.data(), sizeof(length));
  return length;
}

expected<exchange_frame> decode_frame(std::span<const std::byte> bytes) {
  return read_message<rendezvous_wire::Frame, exchange_frame>(bytes, "a rendezvous frame", read_frame);
}

expected<rendezvous_nonce> nonce_of(const exchange_frame& frame) {
  rendezvous_nonce nonce{};
  if (frame.body.size() != nonce.size()) return malformed("a rendezvous nonce");
  std::ranges::copy(frame.body, nonce.begin());
  return nonce;
}

wire_bytes encode_offer(const join_offer& offer) {
  capnp::MallocMessageBuilder message;
  auto wire = message.initRoot<rendezvous_wire::JoinOffer>();
  write_id(wire.initIncarnation(), offer.incarnation);
  wire.setPid(offer.pid);
  wire.setHost(offer.host.c_str());
  wire.setProgram(offer.program.c_str());
  wire.setSlot(offer.slot);
  wire.setAddress(wire_data(offer.address));
  wire.setMachine(offer.machine.c_str());
  wire.setTransport(offer.transport.c_str());
  wire.setDevice(offer.device.c_str());
  return flatten(message, 0);
}

expected<join_offer> decode_offer(std::span<const std::byte> bytes) {
  constexpr std::string_view what = "a join offer";
  return read_message<rendezvous_wire::JoinOffer, join_offer>(
      bytes, what, [what](rendezvous_wire::JoinOffer::Reader wire) -> expected<join_offer> {
        join_offer offer;
        offer.incarnation = read_id<incarnation_id>(wire.getIncarnation());
        offer.pid = wire.getPid();
        offer.host = view(wire.getHost());
        offer.program = view(wire.getProgram());
        offer.slot = wire.getSlot();
        offer.address = bytes_of(wire.getAddress());
        offer.machine = view(wire.getMachine());
        offer.transport = view(wire.getTransport());
        offer.device = view(wire.getDevice());
        const auto named = [](const std::string& text) {
          return text.size() <= limits::name_bytes_max && printable(text);
        };
        const bool sound = offer.incarnation.valid() && named(offer.host) && named(offer.program) &&
                           named(offer.machine) && named(offer.transport) && named(offer.device) &&
                           offer.slot >= -1 && offer.slot < limits::workers_max && offer.pid > 0 &&
                           offer.pid <= limits::rendezvous_pid_max && !offer.address.empty() &&
                           offer.address.size() <= limits::rendezvous_address_bytes_max;
        if (!sound) return malformed(what);
        return offer;
      });
}

wire_bytes encode_answer(const expected<join_answer>& answer) {
  capnp::MallocMessageBuilder message;
  auto wire = message.initRoot<rendezvous_wire::Answer>();
  if (answer) {
    auto joined = wire.initJoined();
    write_id(joined.initJob(), answer->job);
    write_id(joined.initDirector(), answer->director);
    joined.setAddress(wire_data(answer->address));
    joined.setSettings(wire_data(std::as_bytes(std::span{answer->settings})));
  } else {
    write_refusal(wire.initRefused(), answer.failure());
  }
  return flatten(message, 0);
}

expected<join_answer> decode_answer(std::span<const std::byte> bytes) {
  constexpr std::string_view what = "a join answer";
  return read_message<rendezvous_wire::Answer, join_answer>(
      bytes, what, [what](rendezvous_wire::Answer::Reader wire) -> expected<join_answer> {
        if (wire.isRefused()) return read_refusal(wire.getRefused());
        if (!wire.isJoined()) return malformed(what);
        const auto joined = wire.getJoined();
        const auto settings = joined.getSettings();
        join_answer answer;
        answer.job = read_id<job_id>(joined.getJob());
        answer.director = read_id<incarnation_id>(joined.getDirector());
        answer.address = bytes_of(joined.getAddress());
        answer.settings.assign(reinterpret_cast<const char*>(settings.begin()), settings.size());
        const bool sound = answer.job.valid() && answer.director.valid() && !answer.address.empty() &&
                           answer.address.size() <= limits::rendezvous_address_bytes_max &&
                           answer.settings.size() <= limits::envelope_bytes_max;
        if (!sound) return malformed(what);
        return answer;
      });
}

rendezvous_proof prove(std::string_view token, proof_purpose purpose, const proof_context& context,
                       std::span<const std::byte> body) {
  constexpr std::string_view domain = "troupe rendezvous proof";
  wire_bytes text;
  const auto add = [&text](std::span<const std::byte> bytes) {
    text.insert(text.end(), bytes.begin(), bytes.end());
  };
  const std::uint64_t body_bytes = body.size();
  add(std::as_bytes(std::span{domain}));
  add(std::as_bytes(std::span{&purpose, 1}));
  add(std::as_bytes(std::span{&context.client_version, 1}));
  add(std::as_bytes(std::span{&context.server_version, 1}));
  add(context.client);
  add(context.server);
  add(context.answers_to);
  add(std::as_bytes(std::span{&body_bytes, 1}));
  add(body);
  add(context.binding); // the body's end is known: its length came before
  return hmac(std::as_bytes(std::span{token}), text);
}

path_secret derive_path_secret(std::string_view token, job_id job) {
  const std::array<std::uint64_t, 2> salt{job.high(), job.low()};
  auto extracted = hmac(std::as_bytes(std::span{salt}), std::as_bytes(std::span{token}));
  constexpr std::string_view info = "troupe path secret\1"; // the last byte: HKDF's first, and only, block
  auto expanded = hmac(extracted, std::as_bytes(std::span{info}));
  const path_secret secret{expanded};
  OPENSSL_cleanse(extracted.data(), extracted.size());
  OPENSSL_cleanse(expanded.data(), expanded.size());
  return secret;
}

bool same_proof(const rendezvous_proof& expected_proof, std::span<const std::byte> received) {
  return received.size() == expected_proof.size() &&
         CRYPTO_memcmp(expected_proof.data(), received.data(), expected_proof.size()) == 0;
}

} // namespace troupe
