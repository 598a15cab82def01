// Two-level collective: the collective seam over two others, memory inside each host and a network between
// one rank of each.
//
// Flow:     director: prepare -> descriptor (the hosts; the level between's own) -> member: connect
//           a host's first rank: prepares the level inside, and tells the others of its host (level_hub.hpp)
// Owns:     the process's hub. Both levels, and the transport (`attach`), are lent.
// Runs on:  `prepare` and `attach` on the event loop; `connect` and communicators on the device's executor;
//           `abort` and `arrivals` on any thread. The level inside is made on the device, by a member.
//           Destroyed when neither runs any more.
// Fails:    errc::bad_argument: a shape without a plan (level_plan.hpp), or a descriptor that does not fit
//           it; what the levels say.
// Why:      docs/design/0047-sums-in-two-levels.md
#pragma once

#include <memory>
#include <string>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "transports/two_level/level_hub.hpp"
#include "transports/two_level/level_plan.hpp"

namespace troupe {

class two_level_collective final : public collective {
public:
  // `between` is attached here; nobody else does.
  two_level_collective(executor& loop, executor& device, collective& inside, collective& between);
  ~two_level_collective() override;
  two_level_collective(const two_level_collective&) = delete;
  two_level_collective& operator=(const two_level_collective&) = delete;

  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape) override;
  // By `plan`, which is that of `shape` (level_plan::make): for who has made it to choose between ways.
  [[nodiscard]] expected<std::string> prepare(const collective_shape& shape, const level_plan& plan);
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) override;
  void attach(transport* network) override;
  void set_unreachable_handler(unreachable_handler handler) override;
  [[nodiscard]] std::string kind() const override { return inside_.kind() + "+" + between_.kind(); }
  // Whether `descriptor` is one of this kind.
  [[nodiscard]] static bool made(const std::string& descriptor);

private:
  collective& inside_;
  collective& between_;
  std::shared_ptr<level_hub> hub_;
};

} // namespace troupe
