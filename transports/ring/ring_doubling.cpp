// Ring doubling: in round k a rank swaps its partial sum with the rank whose number differs in bit k.
//
// Flow:     own contribution -> (send to the partner; add what it sent, left + right) x log2(world) -> sum
// Owns:     two inboxes a round, and the sum.
// Runs on:  the event loop, additions included: at most `ring_message_bytes_max` a round, some microseconds,
//           where a hop to the device and back would cost more.
// Invariants:
//   RD-1    after round k a rank holds the canonical sum of the aligned 2^(k+1) ranks around it (RP-3).
//   RD-2    an inbox is written for sum n + 2 only after this rank has called for sum n + 1: after sum n.
#include <bit>
#include <cstring>

#include "transports/ring/ring_member.hpp"
#include "transports/ring/ring_ways.hpp"

namespace troupe {
namespace {

class ring_doubling final : public ring_sum {
public:
  explicit ring_doubling(ring_member& owner)
      : owner_{owner}
      , elements_{owner.shape().elements}
      , rounds_{static_cast<std::uint32_t>(std::bit_width(owner.shape().world)) - 1}
      , inboxes_{owner.memory().take(2 * rounds_ * elements_)}
      , sum_{owner.memory().take(elements_)}
      , came_(std::size_t{2} * rounds_)
      , met_(rounds_) {}

  void begin(std::uint64_t number) override {
    number_ = number;
    round_ = 0;
    met_.assign(rounds_, false);
    std::memcpy(sum_.data(), owner_.own(0).data(), elements_ * sizeof(float));
  }
  // The partner of a round still to come may be there before it is its turn.
  void meet(std::uint32_t rank) override {
    const auto apart = rank ^ owner_.rank();
    if (!std::has_single_bit(apart)) return;
    const auto round = static_cast<std::uint32_t>(std::countr_zero(apart));
    met_[round] = true;
    if (round == round_) send();
  }
  void on_part(std::uint32_t from, const ring_frame& part) override {
    if (part.index >= rounds_ || partner(part.index) != from) return;
    if (!owner_.format().unpack(part.values, 0, {inbox(part.arrived, part.index), elements_})) return;
    came(part.arrived, part.index) = true;
    if (part.arrived == number_) advance();
  }

private:
  [[nodiscard]] std::uint32_t partner(std::uint32_t round) const { return owner_.rank() ^ (1U << round); }
  [[nodiscard]] float* inbox(std::uint64_t number, std::uint32_t round) const {
    return inboxes_.data() + (number % 2 * rounds_ + round) * elements_;
  }
  [[nodiscard]] char& came(std::uint64_t number, std::uint32_t round) {
    return came_[number % 2 * rounds_ + round];
  }
  void send() {
    owner_.send_part(partner(round_), round_, {sum_.data(), elements_});
    sent_ = true;
    advance();
  }
  // A round is over once its partial sum has left and the partner's has come.
  void advance() {
    if (!sent_ || !came(number_, round_)) return;
    came(number_, round_) = false;
    sent_ = false;
    add(inbox(number_, round_), (owner_.rank() >> round_ & 1U) != 0);
    if (++round_ < rounds_) return met_[round_] ? send() : void();
    owner_.on_device([this] { owner_.complete({sum_.data(), elements_}); });
  }
  // Left + right; the partner with the lower number is left.
  void add(float* theirs, bool they_are_left) {
    const std::span<float> own{sum_.data(), elements_};
    const std::span<float> other{theirs, elements_};
    if (they_are_left) {
      add_into(other, own);
      std::memcpy(own.data(), other.data(), other.size_bytes());
    } else {
      add_into(own, other);
    }
    owner_.format().round(own, 0);
  }

  ring_member& owner_;
  const std::size_t elements_;
  const std::uint32_t rounds_;
  ring_memory::block inboxes_, sum_;
  std::vector<char> came_; // by sum (two in turn) and round
  std::vector<bool> met_;  // by round
  std::uint64_t number_{0};
  std::uint32_t round_{0};
  bool sent_{false}; // this round's partial sum
};

} // namespace

std::unique_ptr<ring_sum> make_ring_doubling(ring_member& owner) {
  return std::make_unique<ring_doubling>(owner);
}

} // namespace troupe
