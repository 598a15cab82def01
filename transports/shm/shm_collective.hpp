// Shared-memory collective: the collective seam between the processes of one host, on CPUs.
//
// Flow:     director: prepare -> descriptor -> (control plane) -> member: connect -> communicator
// Owns:     on the director's side, the current generation's segment; `prepare` and the destructor end it:
//           its members' waits are aborted, and its memory goes with the last member.
// Runs on:  the director's event loop (`prepare`: some system calls, no first touch of the memory);
//           the member's device executor (`connect`: touches everything, 8-12 us a page).
// Invariants:
//   SM-1    nothing outlives the processes: the segment has no name (CO-3, and DESIGN: no leftovers).
//   SM-2    an old generation's member can write to its own old segment only.
// Why:      docs/design/0002-canonical-reduction.md
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "transports/shm/meeting.hpp"
#include "transports/shm/segment.hpp"

namespace troupe {

struct shm_settings {
  std::uint32_t cores{0}; // cores that the members share; 0: as many as this process may use
  // Where parts of a sum are added up while the device goes on; it blocks meanwhile. Outlives the
  // communicators. Null: on the device, inside `begin`.
  executor* lane{nullptr};
};

class shm_collective final : public collective {
public:
  explicit shm_collective(shm_settings settings = {});
  ~shm_collective() override;
  shm_collective(const shm_collective&) = delete;
  shm_collective& operator=(const shm_collective&) = delete;

  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;

  // Director's side, same thread as `prepare`: meetings that each rank of the current generation has
  // reached; empty before the first `prepare`. Whoever is behind is who the others wait for.
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override;
  [[nodiscard]] std::string kind() const override { return "shm"; }
  // Director's side: aborts the current generation's waits in every member, and lets its memory go with them.
  // Idempotent.
  void end_generation() noexcept;

private:
  shm_settings settings_;
  std::unique_ptr<segment> current_;
};

} // namespace troupe
