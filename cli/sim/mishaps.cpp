#include "cli/sim/mishaps.hpp"

#include <algorithm>
#include <csignal>

#include "cli/sim/strikes.hpp"
#include "runtime/policy/timeouts.hpp"

namespace troupe::sim {
namespace {

using said = std::optional<std::string>;
using namespace std::chrono_literals;

constexpr std::uint64_t room_on_full_disk_max = 3000; // bytes
constexpr double crawl_factor = 1000;
constexpr int watchdog_leases = 4;
constexpr duration director_stops_max = 8s;   // workers wait for it for 5 s
constexpr duration everything_stops_max = 3s; // three leases
constexpr duration soon_max = 200ms;
constexpr duration liveness_limit = std::chrono::minutes{3}; // virtual, once everything is mended

std::optional<std::int64_t> any_of(cluster& in, strikes& by, role which) {
  const auto pids = in.alive(which);
  if (pids.empty()) return std::nullopt;
  return pids[by.draw(pids.size())];
}

std::string process(std::int64_t pid) {
  return "process " + std::to_string(pid);
}

std::string host_name(sim_host_id host) {
  return "host " + std::to_string(host);
}

std::string in_ms(duration length) {
  return std::to_string(length.count() / 1'000'000) + " ms";
}

sim_host_id any_host(cluster& in, strikes& by) {
  return static_cast<sim_host_id>(by.draw(in.where().hosts));
}

// From a third of a lease to three leases.
duration around_a_lease(cluster& in, strikes& by) {
  const auto lease = in.what().settings.detect_after;
  return by.draw_between(lease / 3, lease * 3);
}

} // namespace

namespace mishaps {

said kill(cluster& in, strikes& by) {
  const auto worker = any_of(in, by, role::worker);
  if (!worker) return std::nullopt;
  in.machine().world.kill(*worker, SIGKILL);
  return process(*worker) + " is killed";
}

said kill_all(cluster& in, strikes&) {
  const auto workers = in.alive(role::worker);
  if (workers.empty()) return std::nullopt;
  for (const auto pid : workers)
    in.machine().world.kill(pid, SIGKILL);
  return "all workers are killed";
}

said kill_director(cluster& in, strikes& by) {
  const auto director = any_of(in, by, role::director);
  if (!director) return std::nullopt;
  in.machine().world.kill(*director, SIGKILL);
  in.start_director();
  return "the director is killed";
}

said stop(cluster& in, strikes& by) {
  const auto worker = any_of(in, by, role::worker);
  if (!worker) return std::nullopt;
  auto& world = in.machine().world;
  world.pause(*worker, true);
  // On another host than its director's only a watchdog of that host ends it.
  if (world.find(*worker)->host() != 0)
    world.after(watchdog_leases * in.what().settings.detect_after,
                [&world, pid = *worker] { world.kill(pid, SIGKILL); });
  return process(*worker) + " stops";
}

said stop_for(cluster& in, strikes& by) {
  const auto worker = any_of(in, by, role::worker);
  if (!worker) return std::nullopt;
  auto& world = in.machine().world;
  world.pause(*worker, true);
  const auto length = around_a_lease(in, by);
  world.after(length, [&world, pid = *worker] { world.pause(pid, false); });
  return process(*worker) + " stops for " + in_ms(length);
}

said stop_director(cluster& in, strikes& by) {
  const auto director = any_of(in, by, role::director);
  if (!director) return std::nullopt;
  auto& world = in.machine().world;
  const auto length = by.draw_between(1ms, director_stops_max);
  world.pause(*director, true);
  world.after(length, [&world, pid = *director] { world.pause(pid, false); });
  return "the director stops for " + in_ms(length);
}

// As a machine that is short of time, or whose host is: the second time before anybody but the director could
// run. Once the job trains: before that, a path that is being opened may take too long.
said stop_everything(cluster& in, strikes& by) {
  auto& world = in.machine().world;
  const auto workers = in.alive(role::worker);
  const auto director = any_of(in, by, role::director);
  const auto trains = [&world](std::int64_t pid) { return world.find(pid)->box->step_applied.load() > 0; };
  if (!director || workers.size() < in.where().workers || !std::ranges::all_of(workers, trains))
    return std::nullopt;
  const auto first = by.draw_between(300ms, everything_stops_max);
  const auto looks = by.draw_between(1us, 1ms);
  const auto second = by.draw_between(300ms, everything_stops_max);
  const auto pause_director = [&world, pid = *director](bool paused) { world.pause(pid, paused); };
  pause_director(true);
  for (const auto pid : workers) {
    world.pause(pid, true);
    world.after(first + looks + second, [&world, pid] { world.pause(pid, false); });
  }
  world.after(first, [pause_director] { pause_director(false); });
  world.after(first + looks, [pause_director] { pause_director(true); });
  world.after(first + looks + second, [pause_director] { pause_director(false); });
  return "everything stops for " + in_ms(first) + ", and again for " + in_ms(second);
}

said kill_soon(cluster& in, strikes& by) {
  const auto worker = any_of(in, by, role::worker);
  if (!worker) return std::nullopt;
  auto& world = in.machine().world;
  const auto left = by.draw_between(duration{0}, soon_max);
  world.after(left, [&world, pid = *worker] { world.kill(pid, SIGKILL); });
  return process(*worker) + " is killed in " + in_ms(left);
}

said interrupt(cluster& in, strikes&) {
  if (!in.interrupt()) return std::nullopt;
  return "the job is told to end";
}

said fill_disk(cluster& in, strikes& by) {
  if (in.alive(role::worker).empty()) return std::nullopt; // a job does not start on a full disk
  auto& disk = in.machine().disk;
  const auto room = by.draw(room_on_full_disk_max);
  disk.set_capacity(disk.bytes_used() + room);
  return "the disk has room for " + std::to_string(room) + " bytes more";
}

said lose_power(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  const auto away = by.draw_between(100ms, 4s);
  in.lose_power(host, away, [&by](std::size_t) { return by.draw(2) == 0; });
  return host_name(host) + " loses power for " + in_ms(away);
}

said lose_many(cluster& in, strikes& by) {
  const auto count = std::max(1U, in.where().hosts / 20);
  const auto away = by.draw_between(100ms, 4s);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto host = static_cast<sim_host_id>(1 + by.draw(in.where().hosts - 1));
    if (host < in.where().hosts) in.lose_power(host, away, [&by](std::size_t) { return by.draw(2) == 0; });
  }
  return std::to_string(count) + " hosts lose power for " + in_ms(away);
}

said cut(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  auto& world = in.machine().world;
  const auto length = around_a_lease(in, by);
  by.note_cut(in, length);
  world.hosts().cut({.from = host}, world.now() + length);
  world.hosts().cut({.to = host}, world.now() + length);
  return host_name(host) + " is cut off for " + in_ms(length);
}

said cut_one_way(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  auto& world = in.machine().world;
  const auto length = around_a_lease(in, by);
  by.note_cut(in, length);
  const bool sends = by.draw(2) == 0;
  world.hosts().cut(sends ? sim_link{.from = host} : sim_link{.to = host}, world.now() + length);
  return "for " + in_ms(length) + " nothing " + (sends ? "from " : "for ") + host_name(host) +
         " gets through";
}

said cut_pair(cluster& in, strikes& by) {
  const auto one = any_host(in, by);
  const auto other = any_host(in, by);
  auto& world = in.machine().world;
  const auto length = around_a_lease(in, by);
  by.note_cut(in, length);
  world.hosts().cut({one, other}, world.now() + length);
  world.hosts().cut({other, one}, world.now() + length);
  return host_name(one) + " and " + host_name(other) + " are cut apart for " + in_ms(length);
}

said clog(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  auto& world = in.machine().world;
  const auto length = around_a_lease(in, by);
  const auto each = by.draw_between(5ms, in.what().settings.detect_after / 5);
  world.hosts().clog({.from = host}, each, world.now() + length);
  world.hosts().clog({.to = host}, each, world.now() + length);
  return host_name(host) + " is clogged for " + in_ms(length) + ": " + in_ms(each) + " more a message";
}

said path_error(cluster& in, strikes& by) {
  const auto worker = any_of(in, by, role::worker);
  const auto other = any_of(in, by, by.draw(2) == 0 ? role::director : role::worker);
  if (!worker || !other || *worker == *other) return std::nullopt;
  const bool worker_sees = by.draw(2) == 0;
  auto& world = in.machine().world;
  const auto& sees = *world.find(worker_sees ? *worker : *other);
  const auto& seen = *world.find(worker_sees ? *other : *worker);
  in.machine().network.fail_path(sees, seen, "endpoint error");
  return process(sees.pid()) + " loses its path to process " + std::to_string(seen.pid());
}

said part(cluster& in, strikes& by) {
  const auto one = any_of(in, by, role::worker);
  const auto other = any_of(in, by, role::worker);
  if (!one || !other || *one == *other) return std::nullopt;
  const auto lease = in.what().settings.detect_after;
  const auto length = by.draw_between(lease, lease * 4);
  auto& world = in.machine().world;
  in.machine().network.part(*world.find(*one), *world.find(*other), length);
  return process(*one) + " and process " + std::to_string(*other) + " are parted for " + in_ms(length);
}

said flip_bits(cluster& in, strikes& by) {
  const auto count = 1 + by.draw(2); // fewer than are borne without a word
  in.machine().network.damage_bulk(count);
  return "of " + std::to_string(count) + " transfers that arrive next, a bit is another";
}

said slow(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  const auto factor = 2 + by.draw(9);
  in.machine().world.hosts().set_slowness(host, static_cast<double>(factor));
  return host_name(host) + " is " + std::to_string(factor) + " times as slow";
}

said crawl(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  auto& world = in.machine().world;
  const auto length = by.draw_between(2s, 12s);
  world.hosts().set_slowness(host, crawl_factor);
  world.after(length, [&world, host] { world.hosts().set_slowness(host, 1); });
  return host_name(host) + " nearly stands still for " + in_ms(length);
}

said stay_away(cluster& in, strikes& by) {
  if (in.where().hosts < 2 || in.where().workers < 2) return "nobody else is there";
  const auto host = static_cast<sim_host_id>(1 + by.draw(in.where().hosts - 1));
  const auto waits = timeouts::derive(in.what().settings.detect_after).members_wait;
  const auto away = by.draw_between(waits, waits + 2s);
  in.lose_power(host, away, [&by](std::size_t) { return by.draw(2) == 0; });
  return host_name(host) + " loses power for " + in_ms(away);
}

said clock_drift(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  const auto percent = 90 + by.draw(21);
  auto& world = in.machine().world;
  world.hosts().set_clock_rate(host, static_cast<double>(percent) / 100, world.now());
  return "the clock of " + host_name(host) + " runs at " + std::to_string(percent) + " %";
}

said clock_step(cluster& in, strikes& by) {
  const auto host = any_host(in, by);
  const auto step = around_a_lease(in, by);
  in.machine().world.hosts().step_clock(host, step, in.machine().world.now());
  return "the clock of " + host_name(host) + " jumps forward by " + in_ms(step);
}

said mend(cluster& in, strikes& by) {
  auto& world = in.machine().world;
  world.hosts().heal(world.now());
  in.machine().disk.set_capacity(sim_storage::no_limit);
  for (const auto pid : world.alive())
    world.pause(pid, false);
  in.end_within(liveness_limit);
  by.over();
  return "everything is mended";
}

} // namespace mishaps

const std::vector<named_mishap>& built_in_mishaps() {
  static const std::vector<named_mishap> all{
      {"kill", mishaps::kill},
      {"kill-all", mishaps::kill_all},
      {"director-kill", mishaps::kill_director},
      {"stop", mishaps::stop},
      {"stop-for", mishaps::stop_for},
      {"interrupt", mishaps::interrupt},
      {"disk-full", mishaps::fill_disk},
      {"power-loss", mishaps::lose_power},
      {"cut", mishaps::cut},
      {"cut-one-way", mishaps::cut_one_way},
      {"cut-pair", mishaps::cut_pair},
      {"clog", mishaps::clog},
      {"part", mishaps::part},
      {"path-error", mishaps::path_error},
      {"flip-in-transfer", mishaps::flip_bits},
      {"slow", mishaps::slow},
      {"crawl", mishaps::crawl},
      {"clock-drift", mishaps::clock_drift},
      {"clock-step", mishaps::clock_step},
  };
  return all;
}

} // namespace troupe::sim
