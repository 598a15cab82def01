// Host collectives: the collectives of a real process, of which each generation uses one.
//
// Flow:     director: shape -> [choice] -> shm or ring -> descriptor -> member: the one that made it
// Owns:     both.
// Runs on:  as the collective seam says; `choose` before the first `prepare`.
// Fails:    errc::bad_argument: shared memory is demanded for members that have none in common.
// Why:      docs/design/0038-jobs-across-hosts.md
#pragma once

#include <string_view>

#include "transports/ring/ring_collective.hpp"
#include "transports/shm/shm_collective.hpp"

namespace troupe {

enum class collective_choice : unsigned char {
  automatic, // shared memory where all members are on the director's host, else the network
  shm,
  ring,
};

[[nodiscard]] collective_choice choice_of(std::string_view setting); // as --collective takes it

class host_collectives final : public collective {
public:
  // `lane`: where parts of sums are added up while the device computes.
  host_collectives(executor& loop, executor& device, executor& lane)
      : shm_{{.lane = &lane}}
      , ring_{loop, device, {}, &lane} {}

  void choose(collective_choice which) { choice_ = which; } // the director's; members go by the descriptor

  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override;
  [[nodiscard]] std::string kind() const override { return by_ring_ ? ring_.kind() : shm_.kind(); }
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;
  void attach(transport* network) override { ring_.attach(network); }
  void set_unreachable_handler(unreachable_handler handler) override {
    ring_.set_unreachable_handler(std::move(handler));
  }

private:
  collective_choice choice_{collective_choice::automatic};
  bool by_ring_{false}; // what was prepared last
  shm_collective shm_;
  ring_collective ring_;
};

} // namespace troupe
