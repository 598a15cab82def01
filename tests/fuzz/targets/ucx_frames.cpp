// UCX frames: header, hello with its proof, bulk bodies, the header of a piece.
#include "transports/ucx/frame.hpp"

#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

constexpr job_id job{1, 2};
constexpr incarnation_id from{3, 4};
constexpr incarnation_id self{5, 6};

path_secret secret() {
  return path_secret{path_secret::key{std::byte{7}}};
}

void run_frame(input given) {
  auto fault = frame_fault::none;
  const auto frame = read_frame(given, job, fault);
  require(frame.has_value() == (fault == frame_fault::none), "a frame is read, or the fault is named");
  if (!frame) return;
  require(frame->from.valid() && frame->kind != frame_kind::bulk_piece, "UX-3: a sender, and no piece");
  require(frame->body.size() == given.size() - sizeof(frame_header), "the body is what follows the header");
  (void)read_body<bulk_body>(frame->body);
  if (const auto hello = read_body<hello_body>(frame->body)) {
    const auto address = frame->body.subspan(sizeof(hello_body));
    (void)proves(hello->proof, secret(),
                 {.job = job, .from = frame->from, .to = self, .path = frame->path, .address = address});
  }
}

void run(input given) {
  const auto choice = take_choice(given, 2);
  const auto copy = bytes_of(given);
  if (choice == 0) {
    run_frame(copy);
    return;
  }
  auto fault = frame_fault::none;
  const auto piece = read_piece_header(copy, job, fault);
  require(piece.has_value() == (fault == frame_fault::none), "a piece is read, or the fault is named");
}

template <class... Parts>
bytes joined(unsigned choice, const Parts&... parts) {
  bytes made{static_cast<std::byte>(choice)};
  const auto add = [&made](input part) { made.insert(made.end(), part.begin(), part.end()); };
  (add(std::as_bytes(std::span{&parts, 1})), ...);
  return made;
}

std::vector<bytes> seeds() {
  const std::array<std::byte, 8> address{std::byte{9}};
  const hello_body hello{
      .to_high = self.high(),
      .to_low = self.low(),
      .proof = prove_hello(secret(), {.job = job, .from = from, .to = self, .path = 1, .address = address})};
  const bulk_body bulk{.transfer = 1, .bytes = 1U << 20};
  const piece_header piece{
      .frame = make_frame_header(frame_kind::bulk_piece, job, from, 1, 0), .transfer = 1, .offset = 4096};
  return {joined(0, make_frame_header(frame_kind::hello, job, from, 1, 0), hello, address),
          joined(0, make_frame_header(frame_kind::hello_ack, job, from, 1, 0)),
          joined(0, make_frame_header(frame_kind::message, job, from, 1, 1), address),
          joined(0, make_frame_header(frame_kind::bulk_announce, job, from, 1, 2), bulk), joined(1, piece)};
}

} // namespace

const target ucx_frames_target{"ucx_frames", run, seeds, 6000};

} // namespace troupe::fuzz
