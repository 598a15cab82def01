#include "cli/sim/strikes.hpp"

#include <algorithm>
#include <array>
#include <csignal>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t try_again_events = 25;
constexpr std::uint64_t director_stops_ms_max = 8000; // shorter or longer than workers wait for it
constexpr std::uint64_t kill_after_ms_max = 400;      // a restarted reader waits for a part of this
constexpr std::uint64_t recovery_events = 600;        // about as many as a recovery takes

constexpr std::array<fault_scenario, 31> scenarios{{
    {"none", "no fault", 1, 0},
    {"kill", "one worker is killed", 1, std::nullopt},
    {"kill-two", "two workers are killed, at any two moments", 1, std::nullopt},
    {"kill-all", "all workers are killed at once", 1, std::nullopt},
    {"recovery-kill", "a second worker is killed while the first one's loss is being healed", 1,
     std::nullopt},
    {"stop", "one worker stops for ever", 1, std::nullopt},
    {"stop-for", "one worker stops for a while, shorter or longer than its lease", 1, std::nullopt},
    {"throw-worker", "the step throws", 1, std::nullopt},
    {"throw-prefetcher", "the reader throws", 1, 0},
    {"director-kill", "the director is killed; another one goes on", 1, std::nullopt},
    {"kill-with-director", "the director is killed soon after a worker was", 1, std::nullopt},
    {"disk-full", "the disk is full from some moment on", 1, 0, false},
    {"torn-write", "a worker is killed in the middle of a change to the disk", 1, std::nullopt},
    {"torn-journal", "the director is killed in the middle of a change to the disk", 1, std::nullopt},
    {"interrupt", "the job is told to end; another one goes on", 1, std::nullopt},
    {"planned", "kill, segv, exit or stop, by the job's own fault plan", 1, std::nullopt},
    {"planned-all", "every worker is killed by the job's own fault plan", 1, std::nullopt},
    {"bit-flip", "the newest checkpoint is damaged, then every worker is killed", 1, std::nullopt},
    {"same-error", "the same step throws again and again", 1, std::nullopt, false, true, 3},
    {"often", "worker 0 throws or is killed at one step after the other", 1, std::nullopt, false, true, 3},
    {"prefetcher-often", "the reader of worker 0 throws at one step after the other", 1, std::nullopt, false,
     true, 3},
    {"prefetcher-and-worker", "the reader of worker 0 throws twice, meanwhile a worker is killed", 1,
     std::nullopt},
    {"stop-joining", "one worker stops for ever soon after its start", 1, std::nullopt},
    {"stop-director", "the director stops for a while", 1, std::nullopt, true, false},
    {"damaged-version", "all workers are killed, and a file of the newest checkpoint is lost or changed", 1,
     std::nullopt},
    {"damaged-journal", "the journal is damaged and the director is killed", 1, std::nullopt, true, true, 0,
     true},
    {"busy-disk", "a checkpoint after every step, and the step throws", 1, std::nullopt},
    {"torn-replacement", "all workers are killed while a checkpoint is replaced", 1, std::nullopt},
    {"failed-replacement", "the disk fails for a moment while a checkpoint is replaced", 1, std::nullopt},
    {conversation_scenario, "no job: actors converse, processes are killed, stopped and declared lost"},
    {"mixed", "several of these", 1, std::nullopt},
}};

fault parsed(const std::string& spec) {
  auto made = parse_fault(spec);
  invariant(made.has_value(), "strikes: their own fault specs parse");
  return *made;
}

} // namespace

std::span<const fault_scenario> fault_scenarios() {
  return scenarios;
}

const fault_scenario* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(scenarios, name, &fault_scenario::name);
  return found == scenarios.end() ? nullptr : &*found;
}

strikes::strikes(std::string_view scenario, std::uint64_t seed, std::uint64_t events, workload& what)
    : random_{seed, stream_of("strikes")}
    , events_{events} {
  const auto any_time = [this] { return draw(events_); };
  const auto any_step = [&] { return std::to_string(1 + draw(what.steps)); };
  if (scenario == "kill" || scenario == "kill-two") plan(action::kill, any_time());
  if (scenario == "kill-two") plan(action::kill, any_time());
  if (scenario == "kill-all") plan(action::kill_all, any_time());
  if (scenario == "recovery-kill") {
    const auto first = any_time();
    plan(action::kill, first);
    plan(action::kill, first + 1 + draw(recovery_events));
  }
  if (scenario == "stop" || scenario == "stop-for") plan(action::pause, any_time());
  if (scenario == "stop-for") plan(action::resume, planned_.front().at + 1 + draw(events_ / 2));
  if (scenario == "throw-worker") what.faults = {parsed("throw:worker=any@step=" + any_step())};
  if (scenario == "throw-prefetcher") what.faults = {parsed("throw:prefetcher=any@step=" + any_step())};
  if (scenario == "director-kill") plan(action::kill_director, any_time());
  if (scenario == "kill-with-director") {
    const auto first = any_time();
    plan(action::kill, first);
    plan(action::kill_director, first + 1 + draw(recovery_events));
  }
  if (scenario == "interrupt") plan(action::interrupt, any_time());
  if (scenario == "planned") {
    constexpr std::array kinds{"kill", "segv", "exit", "stop"};
    const std::string kind = kinds[draw(kinds.size())];
    what.faults = {parsed(kind + ":worker=any@step=" + any_step() + (kind == "stop" ? ",for=3s" : ""))};
  }
  if (scenario == "planned-all") what.faults = {parsed("kill:worker=all@step=" + any_step())};
  if (scenario == "bit-flip") {
    const auto damaged = 1 + draw(what.steps - 1);
    const auto killed = damaged + draw(what.steps + 1 - damaged);
    what.faults = {parsed("bit-flip:checkpoint=newest@step=" + std::to_string(damaged)),
                   parsed("kill:worker=all@step=" + std::to_string(killed))};
  }
  if (scenario == "same-error") what.faults = {parsed("throw:worker=0@step=" + any_step() + ",times=always")};
  if (scenario == "disk-full") {
    plan(action::fill_disk, any_time());
    room_left_ = draw(3000);
  }
  if (scenario == "torn-write") {
    writer_ = role::worker;
    changes_left_ = draw(40);
  }
  if (scenario == "torn-journal") {
    writer_ = role::director;
    changes_left_ = draw(8);
  }
  if (scenario == "often") plan_often(draw(2) == 0 ? "kill:worker=0" : "throw:worker=0", what);
  if (scenario == "prefetcher-often") plan_often("throw:prefetcher=0", what);
  if (scenario == "prefetcher-and-worker") {
    const auto step = 1 + draw(what.steps - 1);
    what.faults = {parsed("throw:prefetcher=0@step=" + std::to_string(step)),
                   parsed("throw:prefetcher=0@step=" + std::to_string(step + 1))};
    kill_after_ = std::chrono::milliseconds{kill_after_ms_min + draw(kill_after_ms_max - kill_after_ms_min)};
  }
  if (scenario == "stop-joining") plan(action::pause, draw(events_ / 6));
  if (scenario == "stop-director") plan(action::pause_director, any_time());
  if (scenario == "damaged-version") {
    const auto first = any_time();
    plan(action::kill_all, first);
    plan(action::damage_version, first + draw(recovery_events));
  }
  if (scenario == "damaged-journal") plan(action::damage_journal, any_time());
  plan_busy(scenario, what);
  if (scenario == "mixed") plan_mixed(what);
  std::ranges::stable_sort(planned_, {}, &planned::at);
}

// More often than the restart intensity admits, each time with progress in between.
void strikes::plan_often(const std::string& fault, workload& what) {
  constexpr std::uint64_t times = 12;
  const auto first = 1 + draw(2);
  for (std::uint64_t i = 0; i < times; ++i)
    what.faults.push_back(parsed(fault + "@step=" + std::to_string(first + i * 4)));
}

// A checkpoint after every step: a generation that begins where one was written replaces it.
void strikes::plan_busy(std::string_view scenario, workload& what) {
  replacement_torn_ = scenario == "torn-replacement";
  if (scenario == "failed-replacement") changes_fail_ = 1 + draw(6);
  if (scenario == "busy-disk")
    what.faults = {parsed("throw:worker=any@step=" + std::to_string(1 + draw(what.steps)))};
  else if (replacement_torn_ || changes_fail_ != 0)
    plan(action::kill, draw(events_));
  else
    return;
  what.checkpoint_every = 1;
}

void strikes::plan_mixed(workload& what) {
  const auto step = [&] { return std::to_string(1 + draw(what.steps)); };
  const auto kills = draw(3); // more of one slot without progress would rightly end the job
  for (std::uint64_t i = 0; i < kills; ++i)
    plan(action::kill, draw(events_));
  // Not both: an orphan that is stopped for ever rightly keeps the directory.
  const auto either = draw(4);
  if (either == 0) plan(action::pause, draw(events_));
  if (either == 1) plan(action::kill_director, draw(events_));
  if (draw(2) == 0) what.faults.push_back(parsed("throw:worker=any@step=" + step()));
  if (draw(2) == 0) what.faults.push_back(parsed("throw:prefetcher=any@step=" + step()));
}

std::uint64_t strikes::draw(std::uint64_t below) {
  return below == 0 ? 0 : random_.bits(draws_++) % below;
}

void strikes::arm(cluster& in) {
  if (kill_after_)
    in.machine().world.schedule(*kill_after_, nullptr, [this, &in] { (void)act(in, action::kill); });
  if (writer_) in.before_change([this, &in](sim_process& who) { strike_writer(in, who); });
  if (replacement_torn_ || changes_fail_ != 0)
    in.before_change([this, &in](sim_process&) { strike_replacement(in); });
}

void strikes::strike_writer(cluster& in, sim_process& who) {
  const auto wanted = in.alive(*writer_);
  if (!writer_ || !std::ranges::count(wanted, who.pid()) || changes_left_-- != 0) return;
  tell(in, "process " + std::to_string(who.pid()) + " dies in a change to the disk");
  in.machine().world.kill(who.pid(), SIGKILL);
  const bool director = writer_ == role::director;
  in.before_change({});
  if (director) in.start_director();
}

// At the change after the one that put the former version aside.
void strikes::strike_replacement(cluster& in) {
  auto& disk = in.machine().disk;
  const auto names = disk.list(checkpoint_directory);
  const auto retired = [](const std::string& name) {
    const auto parsed_name = parse_version_name(name);
    return parsed_name && parsed_name->state == version_state::retired;
  };
  if (!names || std::ranges::none_of(*names, retired)) return;
  if (replacement_torn_) {
    tell(in, "all workers are killed, a checkpoint is being replaced");
    for (const auto pid : in.alive(role::worker))
      in.machine().world.kill(pid, SIGKILL);
    if (draw(2) == 0) (void)act(in, action::kill_director);
    return in.before_change({});
  }
  tell(in, "changes to the disk fail");
  disk.fail_changes(error{errc::storage_failed, "the disk fails"});
  in.before_change([this, &in](sim_process&) {
    if (--changes_fail_ != 0) return;
    tell(in, "the disk works again");
    in.machine().disk.fail_changes(std::nullopt);
    in.before_change({});
  });
}

// What a storage may lose or change behind our back.
bool strikes::damage_version(cluster& in) {
  auto& disk = in.machine().disk;
  const auto listing = catalog{disk, checkpoint_directory}.list();
  if (!listing || listing->versions.empty()) return false;
  const auto& newest = listing->versions.back();
  if (newest.step.value() == in.what().steps) return true; // nothing would replace it
  const auto names = disk.list(newest.path);
  if (!names) return false;
  const auto shard = std::ranges::find_if(*names, [](const auto& name) { return name != manifest_name; });
  if (shard == names->end()) return false;
  const bool whole_file = draw(2) == 0;
  const auto path = join_path(newest.path, draw(2) == 0 ? std::string{manifest_name} : *shard);
  tell(in, path + (whole_file ? " is lost" : " is cut"));
  in.look_at_disk();
  const auto bytes = disk.read_file(path, ~std::uint64_t{0});
  if (whole_file || !bytes) return disk.remove_all(path).has_value();
  const std::span<const std::byte> half{bytes->data(), bytes->size() / 2};
  return disk.write_file(path, {&half, 1}).has_value();
}

// For a time, not for a number of events: without a director few things happen.
bool strikes::pause_director(cluster& in) {
  const auto directors = in.alive(role::director);
  if (directors.empty()) return false;
  auto& world = in.machine().world;
  const auto length = std::chrono::milliseconds{1 + draw(director_stops_ms_max)};
  tell(in, "the director stops for " + std::to_string(length.count()) + " ms");
  const auto pid = directors.front();
  world.pause(pid, true);
  world.schedule(length, nullptr, [&world, pid] { world.pause(pid, false); });
  return true;
}

bool strikes::damage_journal(cluster& in) {
  auto& disk = in.machine().disk;
  const auto path = join_path(checkpoint_directory, "journal.json");
  const auto bytes = disk.read_file(path, ~std::uint64_t{0});
  if (!bytes || !act(in, action::kill_director)) return false;
  tell(in, "the journal is cut");
  in.forget_generations();
  const std::span<const std::byte> half{bytes->data(), bytes->size() / 2};
  return disk.write_file(path, {&half, 1}).has_value();
}

void strikes::operator()(cluster& in) {
  const auto now = in.machine().world.events();
  for (auto& one : planned_) {
    if (one.at > now) continue;
    one.at = act(in, one.what) ? ~std::uint64_t{0} : now + try_again_events;
  }
}

std::optional<std::int64_t> strikes::any_worker(const cluster& in) {
  const auto pids = in.alive(role::worker);
  if (pids.empty()) return std::nullopt;
  return pids[draw(pids.size())];
}

void strikes::tell(cluster& in, const std::string& what) {
  const auto& world = in.machine().world;
  told_.push_back("event " + std::to_string(world.events()) + ", " +
                  std::to_string(to_ms(world.now().time_since_epoch())) + " ms: " + what);
}

// False: not possible now.
bool strikes::act(cluster& in, action what) {
  auto& world = in.machine().world;
  const auto worker = any_worker(in);
  const auto name = worker ? "process " + std::to_string(*worker) : std::string{};
  switch (what) {
  case action::kill:
    if (!worker) return false;
    tell(in, name + " is killed");
    world.kill(*worker, SIGKILL);
    return true;
  case action::kill_all:
    if (!worker) return false;
    tell(in, "all workers are killed");
    for (const auto pid : in.alive(role::worker))
      world.kill(pid, SIGKILL);
    return true;
  case action::pause:
    if (!worker) return false;
    tell(in, name + " stops");
    paused_ = *worker;
    world.pause(paused_, true);
    return true;
  case action::pause_director:
    return pause_director(in);
  case action::resume:
    if (paused_ == 0) return false;
    tell(in, "process " + std::to_string(paused_) + " goes on");
    world.pause(paused_, false);
    return true;
  case action::kill_director: {
    const auto directors = in.alive(role::director);
    if (directors.empty()) return false;
    tell(in, "the director is killed");
    world.kill(directors.front(), SIGKILL);
    in.start_director();
    return true;
  }
  case action::damage_journal:
    return damage_journal(in);
  case action::damage_version:
    return damage_version(in);
  case action::interrupt:
    if (!in.interrupt()) return false;
    tell(in, "the job is told to end");
    return true;
  case action::fill_disk:
    if (!worker) return false; // a job does not start on a full disk
    tell(in, "the disk has room for " + std::to_string(room_left_) + " bytes more");
    in.machine().disk.set_capacity(in.machine().disk.bytes_used() + room_left_);
    return true;
  }
  return true;
}

} // namespace troupe::sim
