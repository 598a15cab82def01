// Ring collective: the collective seam between processes of several hosts, over the transport seam, on CPUs.
//
// Flow:     director: prepare -> descriptor (the way that the sum goes) -> (control plane) -> member: connect
// Owns:     the process's hub. The transport is lent (`attach`): it may be a share of one.
// Runs on:  `prepare` and `attach` on the event loop; `connect` and communicators on the device's executor;
//           `abort` and `arrivals` on any thread. Nothing blocks. Destroyed when neither runs any more.
// Fails:    errc::bad_argument: a shape without its members, or a descriptor that does not fit it;
//           out_of_memory. A peer that is not there is silence (ring_member.hpp).
//
// What a generation's members are to each other is decided by its descriptor alone: no process looks at its
// own settings, so all go the same way.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "transports/ring/limits.hpp"
#include "transports/ring/ring_hub.hpp"
#include "transports/ring/ring_plan.hpp"

namespace troupe {

struct ring_settings {
  std::optional<ring_way> way{}; // empty: the cheapest (ring_plan.hpp)
  std::size_t piece_bytes{limits::ring_piece_bytes};
  std::size_t loop_bytes{
      limits::ring_loop_bytes}; // of a piece's contributions: no more are added up on the loop
};

class ring_collective final : public collective {
public:
  // `lane`: where slices are added up; null: on the device, which no part of a sum goes on beside then.
  ring_collective(executor& loop, executor& device, ring_settings settings = {}, executor* lane = nullptr);
  ~ring_collective() override;
  ring_collective(const ring_collective&) = delete;
  ring_collective& operator=(const ring_collective&) = delete;

  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;
  void attach(transport* network) override;
  void set_unreachable_handler(unreachable_handler handler) override;
  [[nodiscard]] std::string kind() const override { return "ring"; }
  // Whether `descriptor` is one of this kind.
  [[nodiscard]] static bool made(const std::string& descriptor);
  [[nodiscard]] ring_hub& hub() { return *hub_; } // for tests: on the loop

private:
  ring_settings settings_;
  std::shared_ptr<ring_hub> hub_;
};

} // namespace troupe
