#include "cli/sim/strikes.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace troupe::sim {
namespace {

constexpr std::uint64_t try_again_events = 25;
constexpr std::uint64_t recovery_events = 600; // about as many as a recovery takes

constexpr std::array<fault_scenario, 34> scenarios{{
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
    {"disk-full", "the disk is full from some moment on", 1, 0, std::nullopt, false},
    {"torn-write", "a worker is killed in the middle of a change to the disk", 1, std::nullopt},
    {"torn-journal", "the director is killed in the middle of a change to the disk", 1, std::nullopt},
    {"interrupt", "the job is told to end; another one goes on", 1, std::nullopt},
    {"planned", "kill, segv, exit or stop, by the job's own fault plan", 1, std::nullopt},
    {"planned-all", "every worker is killed by the job's own fault plan", 1, std::nullopt},
    {"bit-flip", "the newest checkpoint is damaged, then every worker is killed", 1, std::nullopt},
    {"same-error", "the same step throws again and again", 1, std::nullopt, std::nullopt, false, true, 3},
    {.name = "slow",
     .text = "a worker or its reader takes several times as long",
     .recomputed_max = 0,
     .failures_max = 0},
    {.name = "hang-in-collective",
     .text = "a worker does not enter an all-reduce, for a while or for ever",
     .failures_max = 1},
    {.name = "skip-collective",
     .text = "a worker skips an all-reduce and takes its own part for the sum",
     .failures_max = 1},
    {.name = "nan", .text = "a gradient is not a number, once", .recomputed_max = 0, .failures_max = 1},
    {.name = "nan-always",
     .text = "a gradient is not a number, again and again",
     .newest_is_last = false,
     .exit_code = 3},
    {.name = "oom", .text = "an allocation fails in a step", .failures_max = 1},
    {.name = "cut",
     .text = "a worker's messages stop, one way or both, for a while or for ever",
     .failures_max = 1},
    {.name = "clog", .text = "a worker's messages are late", .recomputed_max = 0, .failures_max = 0},
    {.name = "path-error", .text = "a worker's path to the director breaks", .failures_max = 1},
    {.name = "disk-full-for",
     .text = "the disk is full for a while",
     .recomputed_max = 0,
     .failures_max = 0,
     .newest_is_last = false},
    {.name = "disk-slow",
     .text = "writing checkpoints takes several times as long",
     .recomputed_max = 0,
     .failures_max = 0},
    {.name = "torn-shard", .text = "a shard is written half, then its writer dies", .failures_max = 1},
    {.name = "clock-step", .text = "a worker's clock jumps ahead", .recomputed_max = 0, .failures_max = 0},
    {.name = "seams",
     .text = "two or three of those that a job can bear or heal, at any steps",
     .keeps_survivors = false},
    {"mixed", "several of these", 1, std::nullopt},
}};

// The last one may cost a worker its process although another one failed: it does not answer either.
constexpr std::array<std::string_view, 10> seam_kinds{
    "slow", "hang-in-collective", "skip-collective", "nan",        "oom",
    "clog", "path-error",         "disk-slow",       "clock-step", "cut"};
constexpr std::size_t mixed_kinds = seam_kinds.size() - 1;

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
    constexpr std::array kinds{"kill", "segv", "exit", "stop", "oom", "skip-collective", "path-error"};
    const std::string kind = kinds[draw(kinds.size())];
    what.faults = {parsed(kind + ":worker=any@step=" + any_step() + (kind == "stop" ? ",for=3s" : ""))};
  }
  if (scenario == "nan-always") what.faults = {parsed("nan:worker=0@step=" + any_step() + ",times=always")};
  if (scenario == "disk-full-for") what.faults = {parsed("disk-full@step=" + any_step() + for_a_while())};
  if (scenario == "torn-shard") what.faults = {parsed("torn-write@step=" + any_step())};
  if (std::ranges::count(seam_kinds, scenario) != 0) what.faults = {seam_fault(scenario, what)};
  if (scenario == "seams") {
    for (auto left = 2 + draw(2); left > 0; --left)
      what.faults.push_back(seam_fault(seam_kinds[draw(seam_kinds.size())], what));
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
  if (scenario == "mixed") plan_mixed(what);
  std::ranges::stable_sort(planned_, {}, &planned::at);
}

// 1 ms to 5 s: shorter and longer than a step, a lease, a hang.
std::string strikes::for_a_while() {
  constexpr std::array longest_ms{20U, 500U, 5000U};
  return ",for=" + std::to_string(1 + draw(longest_ms[draw(longest_ms.size())])) + "ms";
}

fault strikes::seam_fault(std::string_view kind, const workload& what) {
  const bool reader = kind == "slow" && draw(2) == 0;
  auto spec = std::string{kind} +
              (kind == "disk-slow" ? ""
               : reader            ? ":prefetcher=any"
                                   : ":worker=any") +
              "@step=" + std::to_string(1 + draw(what.steps));
  const bool lasts = kind == "hang-in-collective" || kind == "cut" || kind == "slow" || kind == "disk-slow";
  if (kind == "clog" || (lasts && draw(3) != 0)) spec += for_a_while();
  if (kind == "clock-step") spec += std::array{",for=50ms", ",for=5s", ",for=120min"}[draw(3)];
  if (kind == "slow" || kind == "disk-slow") spec += ",factor=" + std::to_string(2 + draw(9));
  if (kind == "clog") spec += ",factor=" + std::to_string(1 + draw(300)); // ms, below the lease
  if (kind == "cut") spec += std::array{"", ",way=in", ",way=out"}[draw(3)];
  return parsed(spec);
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
  if (draw(2) == 0) what.faults.push_back(seam_fault(seam_kinds[draw(mixed_kinds)], what));
}

std::uint64_t strikes::draw(std::uint64_t below) {
  return below == 0 ? 0 : random_.bits(draws_++) % below;
}

void strikes::arm(cluster& in) {
  if (!writer_) return;
  in.machine().disk.before_change([this, &in](sim_process& who) { strike_writer(in, who); });
}

void strikes::strike_writer(cluster& in, sim_process& who) {
  const auto wanted = in.alive(*writer_);
  if (!writer_ || !std::ranges::count(wanted, who.pid()) || changes_left_-- != 0) return;
  tell(in, "process " + std::to_string(who.pid()) + " dies in a change to the disk");
  in.machine().world.kill(who.pid(), SIGKILL);
  const bool director = writer_ == role::director;
  in.machine().disk.before_change({});
  if (director) in.start_director();
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
