// Mishaps: what may strike a simulated cluster from outside, between any two tasks.
//
// A mishap does one thing to the cluster and says what, or says nothing: it is not possible now, and is tried
// again a little later. What it needs to choose it draws from the seed; what ends later it plans.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/sim/cluster.hpp"

namespace troupe::sim {

class strikes;
using mishap = std::function<std::optional<std::string>(cluster&, strikes&)>;

struct named_mishap {
  std::string name;
  mishap strike;
};

namespace mishaps {

std::optional<std::string> kill(cluster& in, strikes& by);          // one worker
std::optional<std::string> kill_all(cluster& in, strikes& by);      // workers
std::optional<std::string> kill_director(cluster& in, strikes& by); // another one goes on
std::optional<std::string> stop(cluster& in, strikes& by);          // one worker, for ever
std::optional<std::string> stop_for(cluster& in, strikes& by);      // for shorter or longer than a lease
std::optional<std::string> interrupt(cluster& in, strikes& by);     // SIGTERM; another job goes on
std::optional<std::string> fill_disk(cluster& in, strikes& by);
std::optional<std::string> lose_power(cluster& in, strikes& by);  // one host
std::optional<std::string> lose_many(cluster& in, strikes& by);   // one host in twenty, but the first
std::optional<std::string> cut(cluster& in, strikes& by);         // one host from all others, both ways
std::optional<std::string> cut_one_way(cluster& in, strikes& by); // only what it sends, or only what it gets
std::optional<std::string> cut_pair(cluster& in, strikes& by);    // two hosts from each other
std::optional<std::string> clog(cluster& in, strikes& by);        // one host's messages take longer
std::optional<std::string> part(cluster& in, strikes& by);        // two workers, for longer than a lease
std::optional<std::string> path_error(cluster& in, strikes& by); // between two processes, seen by one of them
std::optional<std::string> flip_bits(cluster& in, strikes& by);  // of a transfer or two, as they arrive
std::optional<std::string> slow(cluster& in, strikes& by);       // one host
std::optional<std::string> crawl(cluster& in, strikes& by);      // one host, nearly stands still for a while
std::optional<std::string> stay_away(cluster& in, strikes& by);  // one host, for longer than the job waits
std::optional<std::string> clock_drift(cluster& in, strikes& by);     // one host
std::optional<std::string> clock_step(cluster& in, strikes& by);      // one host, forward
std::optional<std::string> stop_director(cluster& in, strikes& by);   // shorter or longer than workers wait
std::optional<std::string> stop_everything(cluster& in, strikes& by); // twice in a row
std::optional<std::string> kill_soon(cluster& in, strikes& by);       // one worker, a little later
// To the disk (disk_mishaps.cpp).
std::optional<std::string> damage_version(cluster& in,
                                          strikes& by); // the newest loses a file or a part of it
std::optional<std::string> damage_journal(cluster& in, strikes& by);   // and the director is killed
std::optional<std::string> tear_replacement(cluster& in, strikes& by); // all die while a version is replaced
std::optional<std::string> fail_replacement(cluster& in, strikes& by); // the disk fails for a moment then
std::optional<std::string> lose_replacement(cluster& in, strikes& by); // its writer's host loses power then
std::optional<std::string> mend(cluster& in, strikes& by); // everything; the job must get on from here

} // namespace mishaps

// Those that may come together in any order, by their names with dashes.
[[nodiscard]] const std::vector<named_mishap>& built_in_mishaps();

} // namespace troupe::sim
