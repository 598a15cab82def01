// NCCL collective: the collective seam between GPUs.
//
// Flow:     director: prepare -> descriptor (unique ids, under the generation) -> member: connect
// Owns:     on a member's side a share in its device.
// Runs on:  the director's event loop (`prepare`); the device's owner thread (`connect`, which does not wait
//           for the other ranks).
// Invariants:
//   NX-1    a descriptor names its generation and shape; a member of another one is refused before it meets
//           anybody (CO-3).
// Why:      docs/design/0037-collectives-on-gpus.md
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "transports/nccl/gpu_device.hpp"

namespace troupe {

class nccl_collective final : public collective {
public:
  // `on` is null where only `prepare` is called. `calls` outlives it.
  explicit nccl_collective(gpu& calls, std::shared_ptr<gpu_device> on = nullptr)
      : calls_{calls}
      , device_{std::move(on)} {}

  [[nodiscard]] static bool made(std::string_view descriptor); // by `prepare` of one of these
  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  // The same for survivors that shrink the communicator they hold; `without` are the ranks of it that are
  // gone. errc::wrong_version where the library cannot.
  [[nodiscard]] expected<std::string> prepare_shrunk(const collective_shape& shape,
                                                     const std::vector<std::uint32_t>& without) const;
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;

private:
  gpu& calls_;
  std::shared_ptr<gpu_device> device_;
};

} // namespace troupe
