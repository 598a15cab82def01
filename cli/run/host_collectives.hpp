// Host collectives: the collectives of a real process, of which each generation uses one.
//
// Flow:     director: shape -> [choice] -> shm, ring, both, or NCCL -> descriptor -> member: who made it
// Owns:     all of them but NCCL's.
// Runs on:  as the collective seam says; `choose` before the first `prepare`.
// Fails:    errc::bad_argument: shared memory is demanded for members that have none in common.
// Why:      docs/design/0038-jobs-across-hosts.md, docs/design/0047-sums-in-two-levels.md
#pragma once

#include <string_view>

#include "cli/run/host_gpu.hpp"
#include "transports/ring/ring_collective.hpp"
#include "transports/shm/shm_collective.hpp"
#include "transports/two_level/level_plan.hpp"
#include "transports/two_level/two_level_collective.hpp"

namespace troupe {

enum class collective_choice : unsigned char {
  // Shared memory where all members are on the director's host, else the network; and both where several are
  // on one host (level_plan.hpp).
  automatic,
  shm,
  ring, // the network between all
};

[[nodiscard]] collective_choice choice_of(std::string_view setting); // as --collective takes it

class host_collectives final : public collective {
public:
  // `lane`: where parts of sums are added up while the device computes.
  host_collectives(executor& loop, executor& device, executor& lane)
      : shm_{{.lane = &lane}}
      , inside_{{.lane = &lane}}
      , ring_{loop, device, {}, &lane}
      , levels_{loop, device, inside_, ring_} {}

  void choose(collective_choice which) { choice_ = which; } // the director's; members go by the descriptor
  void use(host_gpu& gpu) { gpu_ = &gpu; }                  // sums are NCCL's; it outlives this

  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override;
  [[nodiscard]] std::string kind() const override { return gpu_ != nullptr ? gpu_->kind() : used_->kind(); }
  [[nodiscard]] std::string why() const override { return why_; }
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;
  void attach(transport* network) override { levels_.attach(network); }
  void set_unreachable_handler(unreachable_handler handler) override {
    levels_.set_unreachable_handler(std::move(handler));
  }

private:
  host_gpu* gpu_{nullptr};
  collective_choice choice_{collective_choice::automatic};
  shm_collective shm_;
  shm_collective inside_; // of a host, made by one of its members; used on the device only
  ring_collective ring_;
  two_level_collective levels_; // of these two; attaches the ring
  collective* used_{&shm_};     // what was prepared last
  std::string why_;             // and why not two levels
};

} // namespace troupe
