// What a member of a generation may say to another: any messages and transfers, to one that sums and has a
// group call under way.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "runtime/policy/group_call.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/manual_executor.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ring/ring_collective.hpp"
#include "transports/ring/ring_frame.hpp"

namespace troupe::fuzz {
namespace {

constexpr std::uint64_t generation = 1;
constexpr std::size_t elements = 40;

// The member is rank 0 of two; rank 1 says what it was given.
class table {
public:
  explicit table(ring_way way)
      : ring_{loop_, device_, {.way = way, .piece_bytes = 64}} {
    ring_.attach(here_.get());
    collective_shape shape{generation_id{generation}, 2, 4, elements, 4096};
    for (const auto* end : {here_.get(), peer_.get()})
      shape.members.push_back({end->self(), end->local_address()});
    member_ = std::move(ring_.connect(ring_.prepare(shape).value(), shape, rank_id{0}).value());
    settle();
    (void)peer_->connect(here_->self(), here_->local_address());
    settle();
  }
  ~table() {
    member_->abort();
    settle();
    require(sums_ == 1 && calls_ == 2, "GR-1, CO-2: every call has ended, once");
    member_.reset();
    settle();
    require(ring_.hub().members() == 0, "RM-4: nothing is lent any more");
    ring_.attach(nullptr);
  }
  table(const table&) = delete;
  table& operator=(const table&) = delete;

  void call() {
    std::ranges::fill(member_->contribution(0), 1.0F);
    member_->all_reduce([this](const expected<reduction>&) { ++sums_; });
    const group_operation what{
        .call = group_call::all_reduce, .elements = values_.size(), .in = in(), .out = out()};
    for (int i = 0; i < 2; ++i)
      member_->group()->start(what, [this](const expected<void>&) { ++calls_; });
    settle();
  }
  void say(input message) {
    (void)peer_->send(here_->self(), message);
    settle();
  }
  void transfer(std::uint64_t number, input block) {
    peer_->send_bulk(here_->self(), number, block, [](const expected<void>&) {});
    settle();
  }

private:
  [[nodiscard]] std::span<const std::byte> in() const { return std::as_bytes(std::span{values_}); }
  [[nodiscard]] std::span<std::byte> out() { return std::as_writable_bytes(std::span{sum_}); }
  void settle() {
    while (loop_.run_one() || device_.run_one()) {
    }
  }

  test::manual_executor loop_{1U << 12U}, device_;
  loopback_hub hub_{loop_, {}};
  std::unique_ptr<transport> here_{hub_.open({1, 1})}, peer_{hub_.open({1, 2})};
  ring_collective ring_;
  std::unique_ptr<communicator> member_;
  std::array<float, 100> values_{}, sum_{};
  int sums_{0}, calls_{0};
};

// A choice, a length, and so many bytes; a transfer's begin with its number.
void run(input given) {
  constexpr ring_way ways[]{ring_way::exchange, ring_way::doubling, ring_way::slices};
  table one{ways[take_choice(given, 3)]};
  one.call();
  while (given.size() >= 2) {
    const auto transfers = take_choice(given, 2) == 1;
    const std::size_t wished = take_choice(given, 256);
    const auto what = given.first(std::min(wished, given.size()));
    given = given.subspan(what.size());
    if (!transfers)
      one.say(what);
    else if (what.size() >= sizeof(std::uint64_t)) {
      std::uint64_t number = 0;
      std::memcpy(&number, what.data(), sizeof number);
      one.transfer(number, what.subspan(sizeof number));
    }
  }
}

void add(bytes& to, unsigned kind, const bytes& what) {
  to.push_back(static_cast<std::byte>(kind));
  to.push_back(static_cast<std::byte>(what.size()));
  to.insert(to.end(), what.begin(), what.end());
}

bytes message(ring_frame frame, const bytes& values) {
  frame.generation = generation;
  bytes made(ring_header_bytes);
  encode_header(frame, made);
  made.insert(made.end(), values.begin(), values.end());
  return made;
}

// A show of the same call as the member's, with a room of its own.
bytes show(std::uint64_t turn, std::uint32_t room) {
  const group_operation what{.call = group_call::all_reduce, .elements = 100};
  const auto call = signature_of(what);
  bytes body(sizeof call + 2 * sizeof room);
  std::memcpy(body.data(), &call, sizeof call);
  std::memcpy(body.data() + sizeof call, &room, sizeof room);
  return message({.what = ring_word::show, .arrived = turn}, body);
}

std::vector<bytes> seeds() {
  std::vector<bytes> all;
  for (unsigned way = 0; way < 3; ++way) {
    bytes made{static_cast<std::byte>(way)};
    add(made, 0, message({.what = ring_word::here}, {}));
    add(made, 0, message({.what = ring_word::part, .index = 0, .arrived = 1}, bytes(elements * 4)));
    add(made, 0, show(1, 1));
    add(made, 0, message({.what = ring_word::block, .index = 1}, bytes(200)));
    add(made, 0, show(2, 2));
    add(made, 0, message({.what = ring_word::block, .index = 2}, bytes(200)));
    bytes transfer(8 + 64);
    const auto number = encode({.generation = generation, .sum = 1, .place = 0});
    std::memcpy(transfer.data(), &number, sizeof number);
    add(made, 1, transfer);
    add(made, 0, message({.what = ring_word::group_ended}, {}));
    add(made, 0, message({.what = ring_word::ended}, {}));
    all.push_back(made);
  }
  return all;
}

} // namespace

const target ring_frames_target{"ring_frames", run, seeds, 3000};

} // namespace troupe::fuzz
