// Simulated network: transports and rendezvous of all simulated processes, with delays drawn from the seed.
//
// Order is kept per pair of processes; between pairs the seed decides. A dead process is noticed by its
// peers after a delay, as a lost path. Every payload is copied: bytes cross, as on a wire.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "runtime/seams/rendezvous.hpp"
#include "runtime/seams/transport.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {

struct sim_network_settings {
  duration delay_min{std::chrono::microseconds{15}};
  duration delay_max{std::chrono::microseconds{250}};
  duration loss_notice_min{std::chrono::milliseconds{4}};
  duration loss_notice_max{std::chrono::milliseconds{40}};
  double bulk_bytes_per_s{1.5e9};
};

class sim_transport;

class sim_network {
public:
  explicit sim_network(sim_world& world, sim_network_settings settings = {})
      : world_{world}
      , settings_{settings} {}

  [[nodiscard]] std::unique_ptr<transport> make_transport(sim_process& owner, incarnation_id self);
  [[nodiscard]] std::unique_ptr<rendezvous_server> make_server(sim_process& owner, std::string endpoint);
  [[nodiscard]] std::unique_ptr<rendezvous_client> make_client(sim_process& owner);

  [[nodiscard]] std::uint64_t messages() const { return messages_; }

private:
  friend class sim_transport;
  friend class sim_rendezvous_server;
  friend class sim_rendezvous_client;

  // Delivers `work` in the loop of the process that owns `to`, in the order of the pair.
  void deliver(incarnation_id from, incarnation_id to, duration extra, task work);
  [[nodiscard]] sim_transport* find(incarnation_id who);
  void lost(incarnation_id who, const process_exit& how);

  sim_world& world_;
  sim_network_settings settings_;
  std::map<incarnation_id, sim_transport*> transports_;
  std::map<incarnation_id, std::int64_t> pids_;
  std::map<std::pair<incarnation_id, incarnation_id>, time_point> last_delivery_;
  std::map<std::string, class sim_rendezvous_server*> servers_;
  std::uint64_t messages_{0};
};

} // namespace troupe
