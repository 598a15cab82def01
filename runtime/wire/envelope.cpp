#include "runtime/wire/envelope.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <string>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "runtime/base/limits.hpp"
#include "runtime/wire/envelope.capnp.h"

namespace troupe {
namespace {

constexpr std::size_t word = sizeof(capnp::word);
constexpr std::size_t table_bytes = 8; // of one segment: its number (less one) and its size in words

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + word - 1) / word * word;
}

bool aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % word == 0;
}

kj::ArrayPtr<const capnp::byte> to_data(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const capnp::byte*>(bytes.data()), bytes.size()};
}

// Text needs a terminating zero in the reader's form; the builder copies the characters only.
void set_text(capnp::Text::Builder target, std::string_view text) {
  std::memcpy(target.begin(), text.data(), text.size());
}

void fill(schema::Envelope::Builder root, const envelope& what) {
  root.setJobHigh(what.job.high());
  root.setJobLow(what.job.low());
  root.setSenderHigh(what.sender.high());
  root.setSenderLow(what.sender.low());
  root.setGeneration(what.generation.value());
  root.setTarget(what.target);
  root.setSource(what.source);
  root.setCorrelation(what.correlation);
  root.setType(what.type);
  root.setKind(static_cast<std::uint16_t>(what.kind));
  root.setStatus(what.status);
  if (!what.name.empty()) set_text(root.initName(static_cast<unsigned>(what.name.size())), what.name);
  if (!what.text.empty()) set_text(root.initText(static_cast<unsigned>(what.text.size())), what.text);
  if (!what.body.empty()) root.setBody(to_data(what.body));
}

error corrupt(std::string_view why) {
  return {errc::corrupt, "envelope: " + std::string{why}};
}

// The segment of a framed message, if it is exactly one.
expected<kj::ArrayPtr<const capnp::word>> framed(std::span<const std::byte> bytes) {
  if (bytes.size() > limits::envelope_bytes_max) return corrupt("larger than the limit");
  if (bytes.size() < table_bytes + word || bytes.size() % word != 0) return corrupt("odd size");
  if (!aligned(bytes.data())) return corrupt("misaligned");
  std::array<std::uint32_t, 2> table{};
  std::memcpy(table.data(), bytes.data(), table_bytes);
  if (table[0] != 0 || std::size_t{table[1]} * word != bytes.size() - table_bytes)
    return corrupt("its segment table does not fit its size");
  return kj::ArrayPtr<const capnp::word>{reinterpret_cast<const capnp::word*>(bytes.data()),
                                         bytes.size() / word};
}

envelope view_of(schema::Envelope::Reader root) {
  const auto name = root.getName();
  const auto text = root.getText();
  const auto body = root.getBody();
  envelope result;
  result.job = {root.getJobHigh(), root.getJobLow()};
  result.sender = {root.getSenderHigh(), root.getSenderLow()};
  result.generation = generation_id{root.getGeneration()};
  result.kind = static_cast<envelope_kind>(root.getKind());
  result.status = root.getStatus();
  result.target = root.getTarget();
  result.source = root.getSource();
  result.correlation = root.getCorrelation();
  result.type = root.getType();
  result.name = {name.begin(), name.size()};
  result.text = {text.begin(), text.size()};
  result.body = {reinterpret_cast<const std::byte*>(body.begin()), body.size()};
  return result;
}

expected<envelope> checked(const envelope& what) {
  if (what.kind < envelope_kind::message || what.kind > envelope_kind::credit) return corrupt("unknown kind");
  if (!exit_status::valid(what.status)) return corrupt("unknown status");
  if (!what.sender.valid()) return corrupt("no sender");
  if (what.name.size() > limits::name_bytes_max) return corrupt("name too long");
  if (what.text.size() > limits::error_text_bytes_max) return corrupt("text too long");
  return what;
}

} // namespace

std::size_t encoded_bytes(const envelope& what) {
  using layout = schema::Envelope::_capnpPrivate;
  constexpr std::size_t root = (std::size_t{1} + layout::dataWordSize + layout::pointerCount) * word;
  return table_bytes + root + padded(what.name.size() + 1) + padded(what.text.size() + 1) +
         padded(what.body.size());
}

expected<std::size_t> encode(const envelope& what, std::span<std::byte> into) {
  invariant(aligned(into.data()), "EN: encode is given an 8-byte aligned buffer");
  if (what.name.size() > limits::name_bytes_max || what.text.size() > limits::error_text_bytes_max)
    return error{errc::bad_argument, "envelope: name or text too long"};
  const auto bytes = encoded_bytes(what);
  if (bytes > std::min(into.size() / word * word, limits::envelope_bytes_max))
    return error{errc::too_large, "envelope: " + std::to_string(bytes) + " bytes do not fit"};
  std::memset(into.data(), 0, bytes); // Cap'n Proto builds on zeroed memory
  auto* words = reinterpret_cast<capnp::word*>(into.data());
  capnp::FlatMessageBuilder builder{kj::arrayPtr(words + 1, bytes / word - 1)};
  fill(builder.initRoot<schema::Envelope>(), what);
  const auto used = static_cast<std::uint32_t>(builder.getSegmentsForOutput()[0].size());
  const std::array<std::uint32_t, 2> table{0, used};
  std::memcpy(into.data(), table.data(), table_bytes);
  return table_bytes + std::size_t{used} * word;
}

expected<envelope> decode(std::span<const std::byte> bytes) {
  const auto words = framed(bytes);
  if (!words) return words.failure();
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * words->size() + 64; // each part may be visited a few times
    options.nestingLimit = 4;
    capnp::FlatArrayMessageReader reader{*words, options};
    return checked(view_of(reader.getRoot<schema::Envelope>()));
  } catch (const kj::Exception& malformed) {
    return corrupt(malformed.getDescription().cStr());
  } catch (const std::exception& malformed) {
    return corrupt(malformed.what());
  }
}

} // namespace troupe
