// Ring exchange: every rank sends its contributions to all others, and adds up everything for itself.
//
// Flow:     parts -> one of two inboxes, by the sum's number -> all have come -> evaluation on the device
// Owns:     the inboxes [others' contributions x elements] x 2, and the sum.
// Invariants:
//   RX-1    an inbox is written for sum n + 2 only after this rank has called for sum n + 1 (RM-2: every
//           rank, also one without contributions, is heard in each sum), so after sum n was evaluated.
#include <algorithm>
#include <cstring>

#include "transports/ring/ring_member.hpp"
#include "transports/ring/ring_ways.hpp"

namespace troupe {
namespace {

class ring_exchange final : public ring_sum {
public:
  explicit ring_exchange(ring_member& owner)
      : owner_{owner}
      , elements_{owner.shape().elements}
      , inboxes_{owner.memory().take(2 * owner.plan().slots() * elements_)}
      , sum_{owner.memory().take(elements_)} {
    const auto& plan = owner.plan();
    for (std::uint32_t set = 0; set < 2; ++set)
      for (std::uint32_t slot = 0; slot < plan.slots(); ++slot) {
        const auto own = slot - plan.first_slot(owner.rank()); // wraps around below it
        const bool mine = own < plan.slots_of(owner.rank());
        inputs_[set].push_back(mine ? owner.own(own).data() : inbox(set, slot));
      }
    for (std::uint32_t rank = 0; rank < owner.shape().world; ++rank)
      if (rank != owner.rank()) expected_ += parts_of(rank) + 1;
    missing_[0] = missing_[1] = expected_;
  }

  void begin(std::uint64_t) override {} // nothing but meetings, then
  void meet(std::uint32_t rank) override {
    const auto own = owner_.plan().slots_of(owner_.rank());
    if (own == 0) owner_.send_part(rank, 0, {});
    for (std::uint32_t i = 0; i < own; ++i)
      owner_.send_part(rank, i, owner_.own(i));
    count(owner_.begun());
  }
  void on_part(std::uint32_t from, const ring_frame& part) override {
    const auto slots = owner_.plan().slots_of(from);
    if (part.index >= parts_of(from)) return;
    if (slots == 0 ? !part.values.empty() : !take(from, part)) return;
    count(part.arrived);
  }

private:
  [[nodiscard]] bool take(std::uint32_t from, const ring_frame& part) {
    auto* const into = inbox(part.arrived % 2, owner_.plan().first_slot(from) + part.index);
    return owner_.format().unpack(part.values, 0, {into, elements_});
  }
  [[nodiscard]] std::uint32_t parts_of(std::uint32_t rank) const {
    return std::max(1U, owner_.plan().slots_of(rank));
  }
  [[nodiscard]] float* inbox(std::uint64_t set, std::uint32_t slot) const {
    return inboxes_.data() + (set * owner_.plan().slots() + slot) * elements_;
  }
  // A part of sum `number` has come, or this rank's have left for one of the others: only then may the caller
  // overwrite them (RM-3).
  void count(std::uint64_t number) {
    const auto set = number % 2;
    if (--missing_[set] != 0) return;
    missing_[set] = expected_;
    owner_.on_device([this, set] {
      owner_.plan().evaluate(inputs_[set], 0, elements_, sum_.data());
      owner_.complete({sum_.data(), elements_});
    });
  }

  ring_member& owner_;
  const std::size_t elements_;
  ring_memory::block inboxes_, sum_;
  std::vector<const float*> inputs_[2]; // by the sum's number, then slot
  std::uint32_t expected_{0};           // in a sum: parts of all others, and meetings
  std::uint32_t missing_[2]{};
};

} // namespace

std::unique_ptr<ring_sum> make_ring_exchange(ring_member& owner) {
  return std::make_unique<ring_exchange>(owner);
}

} // namespace troupe
