#include "runtime/session/session_frame.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/session/limits.hpp"

namespace troupe {
namespace {

std::vector<std::byte> frame_of(session_header header, std::size_t more = 0) {
  std::vector<std::byte> frame(sizeof(header) + more);
  std::memcpy(frame.data(), &header, sizeof(header));
  return frame;
}
constexpr session_header batch{session_magic, session_kind::batch, session_lane_id::ordinary, 1, 1, {0, 0}};

TEST_CASE("session frames: a header that breaks a rule is none of ours") {
  CHECK(read_session_header(frame_of(batch)));
  auto wrong = batch;
  wrong.magic = 1;
  CHECK_FALSE(read_session_header(frame_of(wrong)));
  wrong = batch;
  wrong.kind = session_kind{9};
  CHECK_FALSE(read_session_header(frame_of(wrong)));
  wrong = batch;
  wrong.lane = session_lane_id{2};
  CHECK_FALSE(read_session_header(frame_of(wrong)));
  wrong = batch;
  wrong.count = 0;
  CHECK_FALSE(read_session_header(frame_of(wrong)));
  wrong = batch;
  wrong.sequence = 0;
  CHECK_FALSE(read_session_header(frame_of(wrong)));
  wrong = batch;
  wrong.kind = session_kind::ack;
  CHECK_FALSE(read_session_header(frame_of(wrong)));
  const auto whole = frame_of(batch);
  CHECK_FALSE(read_session_header(std::span{whole}.first(sizeof(batch) - 1)));
}

TEST_CASE("session frames: a message that reaches beyond its batch is not taken") {
  std::vector<std::byte> body(24);
  message_header header{8, 0};
  std::memcpy(body.data(), &header, sizeof(header));
  std::span<const std::byte> left{body};
  REQUIRE(take_message(left));
  CHECK(left.size() == 8);
  CHECK(take_message(left)->empty()); // zeros: a message of no bytes
  header.bytes = 17;
  std::memcpy(body.data(), &header, sizeof(header));
  left = body;
  CHECK_FALSE(take_message(left));
  header.bytes = UINT32_MAX;
  std::memcpy(body.data(), &header, sizeof(header));
  CHECK_FALSE(take_message(left));
  header = {8, 1};
  std::memcpy(body.data(), &header, sizeof(header));
  CHECK_FALSE(take_message(left));
}

TEST_CASE("session frames: a resume says exactly how long it is") {
  session_header header{session_magic, session_kind::resume, session_lane_id::ordinary, 0, 0, {3, 4}};
  auto frame = frame_of(header, sizeof(resume_body) + 16 + 5);
  resume_body body{2, 5};
  std::memcpy(frame.data() + sizeof(header), &body, sizeof(body));
  const auto read = read_resume(frame);
  REQUIRE(read);
  CHECK(read->done.size() == 16);
  CHECK(read->address.size() == 5);
  CHECK_FALSE(read_resume(std::span{frame}.first(frame.size() - 1)));
  body.done_count = limits::session_done_transfers_max + 1;
  std::memcpy(frame.data() + sizeof(header), &body, sizeof(body));
  CHECK_FALSE(read_resume(frame));
}

TEST_CASE("session frames: a digest is 32 hex digits, and nothing follows it") {
  const session_header header{session_magic, session_kind::sent, session_lane_id::ordinary, 0, 0, {3, 4}};
  transfer_body body{.transfer = 5, .attempt = 2, .zero = 0, .digest = {}};
  body.digest.fill('a');
  const auto framed = [&](std::size_t bytes) {
    auto frame = frame_of(header, bytes);
    std::memcpy(frame.data() + sizeof(header), &body, std::min(bytes, sizeof(body)));
    return frame;
  };
  CHECK(read_session_header(framed(sizeof(body))));
  const auto read = read_transfer(framed(sizeof(body)));
  REQUIRE(read);
  CHECK(read->transfer == 5);
  CHECK(read->attempt == 2);
  CHECK(read->text() == std::string(32, 'a'));
  CHECK_FALSE(read_transfer(framed(sizeof(body) - 1)));
  CHECK_FALSE(read_transfer(framed(sizeof(body) + 1)));
  body.digest[7] = '\n';
  CHECK_FALSE(read_transfer(framed(sizeof(body))));
  body.digest[7] = '7';
  body.zero = 1;
  CHECK_FALSE(read_transfer(framed(sizeof(body))));
}

TEST_CASE("session frames: no damaged frame is read beyond its end") {
  const counter_rng random{17, 0};
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    auto frame = frame_of(batch, random.bits(3 * round) % 200);
    for (std::size_t i = sizeof(session_header); i < frame.size(); ++i)
      frame[i] = static_cast<std::byte>(random.bits(1'000'000 + round * 256 + i) % 4);
    const auto at = random.bits(3 * round + 1) % frame.size();
    frame[at] = static_cast<std::byte>(random.bits(3 * round + 2));
    if (!read_session_header(frame)) continue;
    auto left = std::span<const std::byte>{frame}.subspan(sizeof(session_header));
    while (take_message(left)) {
    }
    (void)read_resume(frame);
    (void)read_transfer(frame);
  }
  SUCCEED();
}

} // namespace
} // namespace troupe
