// What other ranks may say to a member of a generation that sums in two levels: any messages and transfers,
// while sums are under way, the level inside comes late or never, and the next generation begins.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "runtime/policy/canonical_plan.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/manual_executor.hpp"
#include "transports/loopback/collective/loopback_collective.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ring/ring_collective.hpp"
#include "transports/ring/ring_frame.hpp"
#include "transports/two_level/level_hub.hpp"
#include "transports/two_level/level_plan.hpp"
#include "transports/two_level/two_level_collective.hpp"

namespace troupe::fuzz {
namespace {

// Two hosts: two ranks each, which own a node of the tree; or two ranks, which own two, and one rank.
constexpr std::uint32_t worlds[]{4, 3}; // by seat / 4
constexpr std::uint32_t seats = 4 + 2;  // not the rank that is alone: it has the level between only
constexpr std::uint32_t shards = 8;
constexpr std::size_t elements = 32;
constexpr std::uint64_t generations_max = 4;

enum act : unsigned { say, transfer, call, mate_calls, mate_hands_on, mate_ends, go_on, give_up, acts };

// Hears where the member says that the level inside is.
class ear final : public transport_listener {
public:
  void on_message(incarnation_id, std::span<const std::byte> payload) override {
    const auto frame = decode_level_frame(payload);
    if (frame && frame->what == level_word::here && !frame->place.empty()) place = std::string{frame->place};
  }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement&) override { return {}; }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
  void on_path_lost(incarnation_id, const error&) override {}

  std::optional<std::string> place;
};

// The member, and the other rank of its host, its mate, who is where the member says or makes the level
// inside itself. Everybody else, and what the mate says over the network, is given.
class table {
public:
  table(std::uint32_t world, std::uint32_t rank, ring_way way)
      : world_{world}
      , rank_{rank}
      , ring_{loop_, device_, {.way = way, .piece_bytes = 64}} {
    for (std::uint64_t i = 0; i < world_; ++i)
      ends_.push_back(hub_.open({1, i + 1}));
    levels_.attach(ends_[rank_].get());
    ends_[mate_rank()]->set_listener(&ear_);
    begin_generation();
    for (auto& end : ends_)
      if (end != ends_[rank_]) (void)end->connect(ends_[rank_]->self(), ends_[rank_]->local_address());
    settle();
  }
  ~table() {
    member_->abort();
    settle();
    require(answers_ == calls_, "CO-2: every call has ended, once");
    member_.reset();
    mate_.reset();
    settle();
    require(ring_.hub().members() == 0, "RM-4: nothing is lent any more");
    ends_[mate_rank()]->set_listener(nullptr);
    levels_.attach(nullptr);
  }
  table(const table&) = delete;
  table& operator=(const table&) = delete;

  void act_now(unsigned what) {
    switch (what) {
    case call:
      return sum();
    case mate_calls:
      return let_mate_sum();
    case mate_hands_on:
      return hand_on();
    case mate_ends:
      if (mate_ != nullptr) mate_->abort();
      return settle();
    case go_on:
      if (generation_ < generations_max) begin_generation();
      return settle();
    case give_up:
      member_->abort();
      return settle();
    default:
      return;
    }
  }
  void hear(unsigned from, input message) {
    (void)other(from).send(ends_[rank_]->self(), message);
    settle();
  }
  void take(unsigned from, std::uint64_t number, input block) {
    other(from).send_bulk(ends_[rank_]->self(), number, block, [](const expected<void>&) {});
    settle();
  }

private:
  [[nodiscard]] bool leads() const { return rank_ % 2 == 0; }
  [[nodiscard]] std::uint32_t mate_rank() const { return rank_ ^ 1U; }
  [[nodiscard]] transport& other(unsigned number) const {
    return *ends_[(rank_ + 1 + number % (world_ - 1)) % world_];
  }

  void begin_generation() {
    collective_shape shape{generation_id{++generation_}, world_, shards, elements};
    for (std::uint32_t i = 0; i < world_; ++i)
      shape.members.push_back({ends_[i]->self(), ends_[i]->local_address(), i / 2});
    member_.reset(); // as a worker: the old one goes when the new one comes
    mate_.reset();
    ear_.place.reset();
    answers_ = calls_;
    pending_ = mate_pending_ = mate_takes_ = false;
    inner_ = level_plan::make(shape)->inside(shape, rank_ / 2);
    if (!leads()) ear_.place = mates_.prepare(*inner_).value();
    member_ = std::move(levels_.connect(levels_.prepare(shape).value(), shape, rank_id{rank_}).value());
    settle();
    if (!leads()) join();
  }
  void join() {
    if (mate_ != nullptr || !ear_.place) return;
    if (auto made = mates_.connect(*ear_.place, *inner_, rank_id{mate_rank() % 2})) mate_ = std::move(*made);
  }
  void sum() {
    if (pending_) return;
    const auto own = shard_range(shards, world_, rank_);
    for (std::size_t i = 0; i < owned_nodes(shards, own.first, own.count).size(); ++i)
      std::ranges::fill(member_->contribution(i), 1.0F);
    member_->begin({elements / 2, elements}, {});
    pending_ = true;
    ++calls_;
    member_->all_reduce([this](const expected<reduction>&) {
      ++answers_;
      pending_ = false;
    });
    settle();
  }
  void let_mate_sum() {
    join();
    if (mate_ == nullptr || mate_pending_) return;
    mate_pending_ = true;
    mate_->all_reduce([this](const expected<reduction>&) { mate_pending_ = false; });
    settle();
  }
  void hand_on() {
    join();
    if (mate_ == nullptr || mate_takes_) return;
    mate_takes_ = true;
    mate_->group()->start({.call = group_call::broadcast,
                           .elements = elements,
                           .in = std::as_bytes(std::span{values_}),
                           .out = std::as_writable_bytes(std::span{sum_})},
                          [this](const expected<void>&) { mate_takes_ = false; });
    settle();
  }
  void settle() {
    while (loop_.run_one() || device_.run_one()) {
    }
  }

  const std::uint32_t world_;
  const std::uint32_t rank_;
  test::manual_executor loop_{1U << 12U}, device_;
  loopback_hub hub_{loop_, {}};
  std::vector<std::unique_ptr<transport>> ends_; // by rank
  ear ear_;
  loopback_hall hall_;
  loopback_collective inside_{hall_, &device_}, mates_{hall_, &device_};
  ring_collective ring_;
  two_level_collective levels_{loop_, device_, inside_, ring_};
  std::optional<collective_shape> inner_;
  std::array<float, elements> values_{}, sum_{};
  std::unique_ptr<communicator> member_, mate_;
  std::uint64_t generation_{0};
  int calls_{0}, answers_{0};
  bool pending_{false}, mate_pending_{false}, mate_takes_{false};
};

// Which seat, the ring's way, and acts. Messages and transfers: from whom, a length, and so many bytes.
void run(input given) {
  constexpr ring_way ways[]{ring_way::exchange, ring_way::doubling, ring_way::slices};
  const auto seat = take_choice(given, seats);
  auto way = ways[take_choice(given, 3)];
  if (seat >= 4 && way == ring_way::doubling) way = ring_way::exchange; // needs one contribution each
  table one{worlds[seat / 4], seat % 4, way};
  while (!given.empty()) {
    const auto what = take_choice(given, acts);
    if (what != say && what != transfer) {
      one.act_now(what);
      continue;
    }
    const auto from = take_choice(given, worlds[0] - 1);
    const std::size_t wished = take_choice(given, 256);
    const auto bytes = given.first(std::min(wished, given.size()));
    given = given.subspan(bytes.size());
    if (what == say)
      one.hear(from, bytes);
    else if (bytes.size() >= sizeof(std::uint64_t)) {
      std::uint64_t number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      one.take(from, number, bytes.subspan(sizeof number));
    }
  }
}

// --- seeds ----------------------------------------------------------------------------------------------

class story {
public:
  story(std::uint32_t seat, unsigned way)
      : world_{worlds[seat / 4]}
      , rank_{seat % 4}
      , made_{static_cast<std::byte>(seat), static_cast<std::byte>(way)} {}
  story& add(act what) {
    made_.push_back(static_cast<std::byte>(what));
    return *this;
  }
  story& add(act what, std::uint32_t from, const bytes& content) {
    add(what);
    made_.push_back(static_cast<std::byte>((from + world_ - rank_ - 1) % world_));
    made_.push_back(static_cast<std::byte>(content.size()));
    made_.insert(made_.end(), content.begin(), content.end());
    return *this;
  }
  story& words(std::uint32_t from, level_word what, std::uint64_t generation, std::string_view place = {}) {
    return add(say, from, encode(level_frame{what, generation, 1, from, place}));
  }
  story& ring(std::uint32_t from, ring_word what, std::uint64_t sum, std::size_t floats) {
    bytes content(ring_header_bytes + floats * sizeof(float));
    encode_header({.what = what, .generation = 1, .arrived = sum}, content);
    return add(say, from, content);
  }
  story& piece(std::uint32_t from, bool finished, std::uint32_t place) {
    bytes content(sizeof(std::uint64_t) + 64);
    const auto number =
        troupe::encode({.generation = 1, .sum = 1, .finished = finished, .place = place, .group = false});
    std::memcpy(content.data(), &number, sizeof number);
    return add(transfer, from, content);
  }
  [[nodiscard]] const bytes& content() const { return made_; }

private:
  std::uint32_t world_;
  std::uint32_t rank_;
  bytes made_;
};

std::vector<bytes> seeds() {
  std::vector<bytes> all;
  for (const std::uint32_t seat : {0U, 2U, 4U})
    for (unsigned way = 0; way < 3; ++way) {
      const auto rank = seat % 4;
      const auto other = 2 - rank;
      story told{seat, way};
      told.words(rank + 1, level_word::here, 1).words(other, level_word::here, 1);
      told.ring(other, ring_word::here, 0, 0).add(call).add(mate_calls);
      told.ring(other, ring_word::part, 1, elements); // all that it has
      told.piece(other, false, 0).piece(other, true, 0).add(mate_hands_on).add(call);
      told.words(other, level_word::here, 2).words(rank + 1, level_word::ended, 2);
      told.words(other, level_word::ended, 1).add(go_on).add(call).add(give_up);
      all.push_back(told.content());
    }
  for (const std::uint32_t seat : {1U, 3U, 5U}) {
    const auto first = seat % 4 - 1;
    story told{seat, 0};
    told.add(call).words(first, level_word::here, 1, "loopback:1").add(mate_calls).add(mate_hands_on);
    told.add(call).add(mate_ends).words(first, level_word::here, 2, "loopback:2").add(go_on).add(call);
    told.words(first, level_word::ended, 2).words(first, level_word::here, 3, "loopback:1").add(go_on);
    told.add(call).add(give_up);
    all.push_back(told.content());
  }
  return all;
}

} // namespace

const target level_frames_target{"level_frames", run, seeds, 3000};

} // namespace troupe::fuzz
