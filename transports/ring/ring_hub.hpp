// Ring hub: the members of this process, by generation, and the transport that they share.
//
// Flow:     transport -> [hub] -> the member that a frame or transfer is for
// Owns:     members until they have left and lend nothing; what peers said of generations still to come.
// Runs on:  the event loop; the executors and the memory may be asked for on any thread.
// Invariants:
//   RH-1    a frame or transfer reaches only the member of its generation, and only from one of its ranks
//           (CO-3): others are dropped, or refused, and counted.
//   RH-2    what is remembered of peers that are ahead is bounded, and forgotten with their generation.
//   RH-3    of a rank that cannot be reached, or no more, the handler is told where it is of the newest
//           generation: its sums will not be complete.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/transport.hpp"
#include "transports/ring/ring_frame.hpp"
#include "transports/ring/ring_memory.hpp"

namespace troupe {

class ring_member;

struct ring_counters {
  std::uint64_t stale{0};       // of a generation that is no more, or from no member of it
  std::uint64_t malformed{0};   // no frame, or one that does not fit
  std::uint64_t unsent{0};      // refused by the transport: the sum will not be complete
  std::uint64_t value_bytes{0}; // of gradients, sent
};

class ring_hub final : public transport_listener, public std::enable_shared_from_this<ring_hub> {
public:
  ring_hub(executor& loop, executor& device, executor& lane)
      : loop_{loop}
      , device_{device}
      , lane_{lane} {}

  [[nodiscard]] executor& loop() const { return loop_; }
  [[nodiscard]] executor& device() const { return device_; }
  [[nodiscard]] executor& lane() const { return lane_; }
  [[nodiscard]] ring_memory& memory() const { return *memory_; }

  void attach(transport* network);
  void set_unreachable_handler(collective::unreachable_handler handler) { unreachable_ = std::move(handler); }
  [[nodiscard]] transport* network() const { return network_; } // null: nothing can be sent
  void close() { attach(nullptr), members_.clear(); }           // nothing comes or goes any more
  void enter(const std::shared_ptr<ring_member>& who);
  void leave(const std::shared_ptr<ring_member>& who);
  [[nodiscard]] ring_counters& counters() { return counters_; }
  [[nodiscard]] std::size_t members() const { return members_.size(); }

  void on_message(incarnation_id from, std::span<const std::byte> payload) override;
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override;
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override;
  void on_path_lost(incarnation_id from, const error& cause) override; // told, not judged

private:
  struct heard {
    std::uint64_t generation{0};
    bool here{false};
    bool ended{false};
  };
  struct entry {
    std::shared_ptr<ring_member> member;
    bool left{false};
  };
  [[nodiscard]] entry* find(std::uint64_t masked_generation);
  void remember(incarnation_id from, const ring_frame& frame);
  void forget_left();
  void tell_unreachable(incarnation_id who, const error& cause) const;

  executor& loop_;
  executor& device_;
  executor& lane_;
  const std::shared_ptr<ring_memory> memory_{std::make_shared<ring_memory>()};
  transport* network_{nullptr};
  collective::unreachable_handler unreachable_;
  std::vector<entry> members_;
  std::uint64_t newest_{0}; // generation entered
  std::map<incarnation_id, heard> heard_;
  ring_counters counters_;
};

} // namespace troupe
