#include <array>
#include <cstring>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <catch2/catch_test_macros.hpp>

#include "runtime/wire/control.hpp"
#include "runtime/wire/envelope.hpp"
#include "tests/unit/wire/control_previous.capnp.h"
#include "tests/unit/wire/envelope_later.capnp.h"
#include "tests/unit/wire/hex.hpp"

namespace {

using namespace troupe;

std::vector<std::byte> flat(capnp::MessageBuilder& builder) {
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = std::as_bytes(std::span{words.asBytes().begin(), words.asBytes().size()});
  return {bytes.begin(), bytes.end()};
}

capnp::FlatArrayMessageReader reader_of(std::span<const std::byte> bytes) {
  return capnp::FlatArrayMessageReader{
      {reinterpret_cast<const capnp::word*>(bytes.data()), bytes.size() / sizeof(capnp::word)}};
}

// A heartbeat as commit 108b762 wrote it.
constexpr std::string_view golden_heartbeat =
    "0000000009000000000000000600020002000000010000000300000000000000"
    "08000000000000000700000000000000e803000000000000d007000000000000"
    "00000000000000000000000000000000";
// An envelope of envelope_later.capnp.
constexpr std::string_view golden_envelope =
    "0000000014000000000000000b00040000000000000000000000000000000000"
    "0000000000000000040000000000000000000000000000000600000000000000"
    "0000000000000000000000000000000000000000000000000200000000000000"
    "4d000000000000000d0000005a00000000000000000000000d0000001a000000"
    "0d00000032000000707265666574636865720000000000000102030000000000"
    "6c61746572000000";
// A heartbeat as 0.1.0 writes it: the newest call between ranks was appended.
constexpr std::string_view golden_heartbeat_now =
    "000000000b000000000000000800020002000000010000000300000000000000"
    "08000000000000000700000000000000e803000000000000d007000000000000"
    "0500000000000000000000000000000000000000000000000000000000000000";

std::vector<std::byte> previous_heartbeat() {
  capnp::MallocMessageBuilder builder;
  auto body = builder.initRoot<wire::previous::Control>().initHeartbeat();
  body.setGeneration(3);
  body.setStepStarted(8);
  body.setStepApplied(7);
  body.setDoing(2);
  body.setDoingForNs(1000);
  body.setStepBusyNs(2000);
  return flat(builder);
}

std::vector<std::byte> later_envelope() {
  capnp::MallocMessageBuilder builder;
  auto root = builder.initRoot<later::Envelope>();
  root.setSenderLow(4);
  root.setTarget(6);
  root.setKind(static_cast<std::uint16_t>(envelope_kind::request));
  root.setName("prefetcher");
  const std::array<capnp::byte, 3> body{1, 2, 3};
  root.setBody({body.data(), body.size()});
  root.setDeadlineNs(77);
  root.setTrace("later");
  return flat(builder);
}

} // namespace

TEST_CASE("envelope: one of the next version reads, what is not known is skipped (golden)", "[wire]") {
  const auto bytes = later_envelope();
  CHECK(hex_of(bytes) == golden_envelope);
  const auto read = decode(bytes);
  REQUIRE(read);
  CHECK(read->sender == incarnation_id{0, 4});
  CHECK(read->target == 6);
  CHECK(read->kind == envelope_kind::request);
  CHECK(read->name == "prefetcher");
  CHECK(hex_of(read->body) == "010203");
}

TEST_CASE("envelope: one of 0.1.0 reads at the next version, what it lacks is at its default", "[wire]") {
  alignas(8) std::array<std::byte, 512> room{};
  envelope what;
  what.sender = {0, 4};
  what.target = 6;
  what.name = "prefetcher";
  const auto used = encode(what, room);
  REQUIRE(used);
  auto reader = reader_of(std::span{room}.first(*used));
  const auto root = reader.getRoot<later::Envelope>();
  CHECK(root.getTarget() == 6);
  CHECK(root.getName() == "prefetcher");
  CHECK(root.getDeadlineNs() == 0);
  CHECK_FALSE(root.hasTrace());
}

TEST_CASE("control: messages of the previous version read, what they lack is at its default (golden)",
          "[wire]") {
  const auto bytes = previous_heartbeat();
  CHECK(hex_of(bytes) == golden_heartbeat);
  const auto read = wire::decode(bytes);
  REQUIRE(read);
  const auto& beat = std::get<wire::heartbeat>(*read);
  CHECK(beat.generation == generation_id{3});
  CHECK(beat.step_started == 8);
  CHECK(beat.step_busy == duration{2000});
  CHECK(beat.arrivals == 0); // appended since
  CHECK(beat.call_number == 0);

  capnp::MallocMessageBuilder builder;
  auto failed = builder.initRoot<wire::previous::Control>().initActorFailed();
  failed.setActor("worker");
  failed.setText("boom");
  const auto back = wire::decode(flat(builder));
  REQUIRE(back);
  CHECK(std::get<wire::actor_failed>(*back).text == "boom");
  CHECK(std::get<wire::actor_failed>(*back).code == errc::bad_argument); // the value 0: appended since
}

TEST_CASE("control: the previous version reads today's messages, what it does not know is skipped (golden)",
          "[wire]") {
  const auto bytes = wire::encode(wire::heartbeat{.generation = generation_id{3},
                                                  .step_started = 8,
                                                  .step_applied = step_id{7},
                                                  .doing = 2,
                                                  .doing_for = duration{1000},
                                                  .step_busy = duration{2000},
                                                  .arrivals = 5});
  CHECK(hex_of(bytes) == golden_heartbeat_now);
  auto reader = reader_of(bytes);
  const auto root = reader.getRoot<wire::previous::Control>();
  REQUIRE(root.isHeartbeat());
  CHECK(root.getHeartbeat().getStepApplied() == 7);
  CHECK(root.getHeartbeat().getStepBusyNs() == 2000);
  const auto finished = wire::encode(wire::worker_finished{.step = step_id{9}, .state_digest = "bb"});
  auto second = reader_of(finished);
  CHECK(second.getRoot<wire::previous::Control>().getWorkerFinished().getStateDigest() == "bb");
}

TEST_CASE("control: a kind of the next version is refused by name, and nothing else happens", "[wire]") {
  capnp::MallocMessageBuilder builder;
  builder.initRoot<wire::previous::Control>().initStartGeneration().setGeneration(1);
  auto bytes = flat(builder);
  // The kind stands in the root's data section; every kind that today's build does not know is refused.
  const auto today = wire::encode(wire::fault_struck{1});
  REQUIRE(wire::decode(today));
  std::size_t unknown = 0;
  for (std::size_t at = 16; at + 2 <= bytes.size(); at += 2) {
    auto other = bytes;
    const std::uint16_t kind = 999;
    std::memcpy(other.data() + at, &kind, sizeof kind);
    const auto read = wire::decode(other);
    if (!read && read.failure().text.find("unknown kind") != std::string::npos) ++unknown;
  }
  CHECK(unknown == 1);
}
