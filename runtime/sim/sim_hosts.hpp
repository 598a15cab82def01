// Simulated hosts: what differs from machine to machine: the clock, the speed, the links to the others.
//
// Flow:     faults of the seed -> [sim_hosts] -> clocks, executors, network and collectives of the processes
// Owns:     values only; a host is a number, 0 unless said otherwise. All begin alike and faultless.
// A cut keeps what is sent meanwhile, in order, and lets it go when it ends, as a TCP connection would
// that was not torn down. Processes of one host always reach each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/base/time.hpp"

namespace troupe {

using sim_host_id = std::uint32_t;
inline constexpr sim_host_id every_host = ~sim_host_id{0}; // in a link: whichever it is

struct sim_link { // one way
  sim_host_id from{every_host};
  sim_host_id to{every_host};
  bool operator==(const sim_link&) const = default;
};

class sim_hosts {
public:
  // From `now` on the host's clock runs `rate` times as fast as the world's (0.5 to 2); no jump.
  void set_clock_rate(sim_host_id host, double rate, time_point now);
  // The host's clock jumps forward; what waits for a timer waits as long as before.
  void step_clock(sim_host_id host, duration by, time_point now);
  [[nodiscard]] time_point local_time(sim_host_id host, time_point world) const;
  [[nodiscard]] duration world_duration(sim_host_id host, duration local) const;

  // Tasks of the host's executors take `factor` times as long.
  void set_slowness(sim_host_id host, double factor) { slowness_[host] = factor; }
  [[nodiscard]] double slowness(sim_host_id host) const;

  void cut(sim_link link, time_point until);
  void clog(sim_link link, duration each, time_point until); // every message takes that much longer
  // When a message that is sent at `now` sets out; `now` itself where nothing is in its way.
  [[nodiscard]] time_point departure(sim_host_id from, sim_host_id to, time_point now) const;
  // When no cut lies between the two: what a clog was in the way of has been late already, once.
  [[nodiscard]] time_point uncut(sim_host_id from, sim_host_id to, time_point now) const;
  // When what all of them do together, since `begun`, is done: each clog makes it late once.
  [[nodiscard]] time_point reunion(std::span<const sim_host_id> members, time_point begun,
                                   time_point now) const;

  // Links, speeds and clock rates are as they were in the beginning; clocks do not go back.
  void heal(time_point now);

private:
  struct clock {
    double rate{1};
    time_point since{}; // world time of the last change of rate
    time_point base{};  // local time then
  };
  struct obstacle {
    sim_link link;
    time_point until;
    duration each{0}; // 0: a cut
  };
  [[nodiscard]] static bool covers(sim_link link, sim_host_id from, sim_host_id to);

  std::map<sim_host_id, clock> clocks_;
  std::map<sim_host_id, double> slowness_;
  std::vector<obstacle> obstacles_;
};

} // namespace troupe
