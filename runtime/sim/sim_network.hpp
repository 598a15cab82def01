// Simulated network: transports and rendezvous of all simulated processes, with delays drawn from the seed.
//
// Order is kept per pair of processes; between pairs the seed decides. A dead process is noticed by its
// peers after a delay, as a lost path; a paused one never is. Every payload is copied: bytes cross, as on a
// wire. A bulk transfer takes time: half of it has arrived until it ends, whatever happens in between. What
// lies between two hosts (cuts, clogs) is said by sim_hosts.
//
// Invariants: those of the transport seam (TR-1 .. TR-5), and
//   SN-1    a process that has ended sends nothing more, also not from the task or destructor that ends it.
//   SN-2    a join is answered exactly once: by the server, or by its deadline.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/seams/rendezvous.hpp"
#include "runtime/seams/transport.hpp"
#include "runtime/sim/sim_world.hpp"

namespace troupe {

struct sim_network_settings {
  duration delay_min{std::chrono::microseconds{15}};
  duration delay_max{std::chrono::microseconds{250}};
  duration loss_notice_min{std::chrono::milliseconds{4}};
  duration loss_notice_max{std::chrono::milliseconds{40}};
  duration bulk_latency_max{std::chrono::milliseconds{2}}; // beside the time that the bytes take
  double bulk_bytes_per_s{1.5e9};
  duration late_completion_max{0}; // between the end of a path and the end of the transfers on it
  std::size_t in_flight_bytes_max{std::size_t{1} << 22}; // of one pair; above: errc::no_credit
};

class sim_transport;
class sim_rendezvous_server;

class sim_network {
public:
  explicit sim_network(sim_world& world, sim_network_settings settings = {})
      : world_{world}
      , settings_{settings} {}

  [[nodiscard]] std::unique_ptr<transport> make_transport(sim_process& owner, incarnation_id self);
  // An endpoint of port 0 gets a free port, as a socket would.
  [[nodiscard]] std::unique_ptr<rendezvous_server> make_server(sim_process& owner,
                                                               std::string endpoint = "sim:0");
  [[nodiscard]] std::unique_ptr<rendezvous_client> make_client(sim_process& owner);

  // The path between two processes fails on one side; nobody else sees anything of it yet.
  void fail_path(const sim_process& of, const sim_process& to, const std::string& cause);
  // The path between two processes fails on both sides, and none can be opened for `length`.
  void part(const sim_process& one, const sim_process& other, duration length);
  // Whose bulk is under way: process ids.
  [[nodiscard]] std::vector<std::int64_t> sending_bulk() const;
  // One bit of each of the next `count` bulk transfers to arrive is another than was sent.
  void damage_bulk(std::uint64_t count) { damages_left_ = count; }
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

private:
  friend class sim_transport;
  friend class sim_rendezvous_server;
  friend class sim_rendezvous_client;

  struct end_point {
    sim_transport* transport{nullptr};
    sim_process* owner{nullptr}; // the world keeps ended ones
  };

  // Runs `work` in the loop of the process that owns `to`, in the order of the pair.
  void deliver(incarnation_id from, incarnation_id to, task work);
  [[nodiscard]] sim_transport* find(incarnation_id who); // nullptr: its process has ended
  void lost(incarnation_id who, const process_exit& how);
  [[nodiscard]] bool parted(incarnation_id one, incarnation_id other) const;
  [[nodiscard]] duration delay();                                               // of one message
  [[nodiscard]] duration delay(const sim_process& from, const sim_process& to); // and of what is in its way

  sim_world& world_;
  sim_network_settings settings_;
  std::map<incarnation_id, end_point> ends_;
  std::map<std::pair<incarnation_id, incarnation_id>, time_point> last_delivery_;
  std::map<std::pair<incarnation_id, incarnation_id>, time_point> parted_; // until when, both ways
  std::map<std::string, sim_rendezvous_server*> servers_;
  std::uint64_t next_port_{40000};
  std::uint64_t messages_{0};
  std::uint64_t damages_left_{0};
};

} // namespace troupe
