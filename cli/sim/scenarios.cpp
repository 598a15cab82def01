// The fault scenarios: what each of them plans.
#include <algorithm>
#include <array>

#include "cli/sim/strikes.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t recovery_events = 600; // about as many as a recovery takes
constexpr std::uint64_t flap_events = 300;
constexpr std::uint64_t changes_by_worker = 40; // to the disk, in a whole job
constexpr std::uint64_t changes_by_director = 8;
constexpr std::uint64_t random_strikes_max = 5;
// More deaths of one worker without progress would rightly end the job.
constexpr std::uint64_t random_deaths_max = 2;

template <mishap::result_type (*Strike)(cluster&, strikes&)>
void once(strikes& s) {
  s.plan(Strike, s.any_time());
}

void kill_two(strikes& s) {
  s.plan(mishaps::kill, s.any_time());
  s.plan(mishaps::kill, s.any_time());
}

void recovery_kill(strikes& s) {
  const auto first = s.any_time();
  s.plan(mishaps::kill, first);
  s.plan(mishaps::kill, first + 1 + s.draw(recovery_events));
}

void kill_with_director(strikes& s) {
  const auto first = s.any_time();
  s.plan(mishaps::kill, first);
  s.plan(mishaps::kill_director, first + 1 + s.draw(recovery_events));
}

void flap(strikes& s) {
  auto at = s.any_time();
  for (const auto pause : {std::uint64_t{1}, recovery_events, std::uint64_t{1}}) {
    s.plan(mishaps::kill, at);
    at += pause + s.draw(flap_events);
  }
}

void throw_worker(strikes& s) {
  s.plan_job_fault("throw:worker=any@step=" + s.any_step());
}

void throw_prefetcher(strikes& s) {
  s.plan_job_fault("throw:prefetcher=any@step=" + s.any_step());
}

void planned(strikes& s) {
  constexpr std::array kinds{"kill", "segv", "exit", "stop"};
  const std::string kind = kinds[s.draw(kinds.size())];
  s.plan_job_fault(kind + ":worker=any@step=" + s.any_step() + (kind == "stop" ? ",for=3s" : ""));
}

void planned_all(strikes& s) {
  s.plan_job_fault("kill:worker=all@step=" + s.any_step());
}

void bit_flip(strikes& s) {
  const auto damaged = 1 + s.draw(s.steps() - 1);
  const auto killed = damaged + s.draw(s.steps() + 1 - damaged);
  s.plan_job_fault("bit-flip:checkpoint=newest@step=" + std::to_string(damaged));
  s.plan_job_fault("kill:worker=all@step=" + std::to_string(killed));
}

void same_error(strikes& s) {
  s.plan_job_fault("throw:worker=0@step=" + s.any_step() + ",times=always");
}

// A worker that joined from outside cannot tell its director that a fault of the plan has struck it, so its
// replacement is struck again.
void mixed(strikes& s) {
  const auto kills = s.draw(random_deaths_max + 1);
  for (std::uint64_t i = 0; i < kills; ++i)
    s.plan(mishaps::kill, s.any_time());
  // Not both: an orphan that is stopped for ever rightly keeps the directory.
  const auto either = s.draw(4);
  if (either == 0) s.plan(mishaps::stop, s.any_time());
  if (either == 1) s.plan(mishaps::kill_director, s.any_time());
  if (s.draw(2) == 0 && s.where().hosts == 1) throw_worker(s);
  if (s.draw(2) == 0) throw_prefetcher(s);
}

bool is_any(const std::string& name, std::initializer_list<std::string_view> of) {
  return std::ranges::find(of, name) != of.end();
}

// Safety first, then liveness: several mishaps of any kind at any time; later everything is mended, and from
// there on the job must get to its end in bounded time.
void random_mishaps(strikes& s) {
  std::vector<named_mishap> pool = built_in_mishaps();
  pool.insert(pool.end(), s.more().begin(), s.more().end());
  const auto count = 1 + s.draw(random_strikes_max);
  std::uint64_t deaths = 0;
  std::uint64_t last = 0;
  bool needs_director = false; // an orphan that stops for ever, or a full disk, rightly keeps another one out
  bool loses_director = false;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto& one = pool[s.draw(pool.size())];
    const auto at = s.any_time();
    if (is_any(one.name, {"kill", "kill-all", "power-loss"}) && ++deaths > random_deaths_max) continue;
    const bool needs = is_any(one.name, {"stop", "disk-full"});
    const bool loses = is_any(one.name, {"director-kill", "power-loss", "interrupt"});
    if ((needs && loses_director) || (loses && needs_director)) continue;
    needs_director = needs_director || needs;
    loses_director = loses_director || loses;
    if (one.name == "disk-full") s.expect().newest_is_last = false;
    // Whoever is stopped when the director's clock jumps may be ended for a deadline, as if it lived.
    // The same for one that cannot reach its peer again: a path that has failed stays closed.
    if (is_any(one.name, {"clock-step", "path-error"})) s.expect().keeps_survivors = false;
    s.plan(one.strike, at);
    last = std::max(last, at);
  }
  if (s.draw(4) == 0 && s.where().hosts == 1) throw_worker(s);
  if (s.draw(4) == 0) throw_prefetcher(s);
  s.plan(mishaps::mend, last + 1 + s.draw(2 * s.events()));
}

// More often than the restart intensity admits, each time with progress in between.
void plan_often(strikes& s, const std::string& fault) {
  constexpr std::uint64_t times = 12;
  const auto first = 1 + s.draw(2);
  for (std::uint64_t i = 0; i < times; ++i)
    s.plan_job_fault(fault + "@step=" + std::to_string(first + i * 4));
}

void often(strikes& s) {
  plan_often(s, s.draw(2) == 0 ? "kill:worker=0" : "throw:worker=0");
}

void prefetcher_often(strikes& s) {
  plan_often(s, "throw:prefetcher=0");
}

// The second time the reader's restart waits a little.
void prefetcher_and_worker(strikes& s) {
  const auto step = 1 + s.draw(s.steps() - 1);
  s.plan_job_fault("throw:prefetcher=0@step=" + std::to_string(step));
  s.plan_job_fault("throw:prefetcher=0@step=" + std::to_string(step + 1));
  s.plan(mishaps::kill_soon, s.any_time());
}

void stop_joining(strikes& s) {
  s.plan(mishaps::stop, s.draw(s.events() / 6));
}

void damaged_version(strikes& s) {
  const auto first = s.any_time();
  s.plan(mishaps::kill_all, first);
  s.plan(mishaps::damage_version, first + s.draw(recovery_events));
}

// Where a generation begins at a step whose checkpoint was written already, it is replaced.
void torn_replacement(strikes& s) {
  s.plan(mishaps::kill, s.any_time());
  s.plan(mishaps::tear_replacement, 0);
}

void failed_replacement(strikes& s) {
  s.plan(mishaps::kill, s.any_time());
  s.plan(mishaps::fail_replacement, 0);
}

constexpr expectation nothing_again{.recomputed_max = 0};
constexpr expectation gives_up{.newest_is_last = false, .exit_code = 3};
constexpr expectation begins_anew{.generations_anew = true};
constexpr expectation loses_survivors{.keeps_survivors = false};
constexpr expectation failing_disk{.newest_is_last = false};
constexpr expectation full_disk{.recomputed_max = 0, .newest_is_last = false};

constexpr std::array scenarios{
    fault_scenario{"none", "no fault", nullptr, nothing_again},
    fault_scenario{"kill", "one worker is killed", once<mishaps::kill>},
    fault_scenario{"kill-two", "two workers are killed, at any two moments", kill_two},
    fault_scenario{"kill-all", "all workers are killed at once", once<mishaps::kill_all>},
    fault_scenario{"recovery-kill", "a second worker is killed while the first one's loss is being healed",
                   recovery_kill},
    fault_scenario{"flap", "workers are killed again and again", flap},
    fault_scenario{"stop", "one worker stops for ever", once<mishaps::stop>},
    fault_scenario{"stop-for", "one worker stops for a while, shorter or longer than its lease",
                   once<mishaps::stop_for>},
    fault_scenario{"throw-worker", "the step throws", throw_worker},
    fault_scenario{"throw-prefetcher", "the reader throws", throw_prefetcher, nothing_again},
    fault_scenario{"director-kill", "the director is killed; another one goes on",
                   once<mishaps::kill_director>},
    fault_scenario{"kill-with-director", "the director is killed soon after a worker was",
                   kill_with_director},
    fault_scenario{"disk-full", "the disk is full from some moment on", once<mishaps::fill_disk>, full_disk},
    fault_scenario{"torn-write", "a worker is killed in the middle of a change to the disk",
                   [](strikes& s) { s.die_in_change(role::worker, changes_by_worker); }},
    fault_scenario{"torn-journal", "the director is killed in the middle of a change to the disk",
                   [](strikes& s) { s.die_in_change(role::director, changes_by_director); }},
    fault_scenario{"interrupt", "the job is told to end; another one goes on", once<mishaps::interrupt>},
    fault_scenario{"planned", "kill, segv, exit or stop, by the job's own fault plan", planned},
    fault_scenario{"planned-all", "every worker is killed by the job's own fault plan", planned_all},
    fault_scenario{"bit-flip", "the newest checkpoint is damaged, then every worker is killed", bit_flip},
    fault_scenario{"same-error", "the same step throws again and again", same_error, gives_up},
    fault_scenario{"often", "worker 0 throws or is killed at one step after the other", often, gives_up},
    fault_scenario{"prefetcher-often", "the reader of worker 0 throws at one step after the other",
                   prefetcher_often, gives_up},
    fault_scenario{"prefetcher-and-worker", "the reader of worker 0 throws twice, a worker is killed",
                   prefetcher_and_worker},
    fault_scenario{"stop-joining", "one worker stops for ever soon after its start", stop_joining},
    fault_scenario{"stop-director", "the director stops for a while", once<mishaps::stop_director>,
                   loses_survivors},
    fault_scenario{"damaged-version", "all workers are killed, the newest checkpoint loses a file or a part",
                   damaged_version},
    fault_scenario{"damaged-journal", "the journal is damaged and the director is killed",
                   once<mishaps::damage_journal>, begins_anew},
    fault_scenario{"torn-replacement", "all workers are killed while a checkpoint is replaced",
                   torn_replacement},
    fault_scenario{"failed-replacement", "the disk fails for a moment while a checkpoint is replaced",
                   failed_replacement, failing_disk},
    fault_scenario{conversation_scenario,
                   "no job: actors converse, processes are killed, stopped and declared lost"},
    fault_scenario{"mixed", "several of these", mixed},
    fault_scenario{"power-loss", "one host loses power, and what it had not flushed",
                   once<mishaps::lose_power>},
    fault_scenario{"lose-many", "one host in twenty loses power at once", once<mishaps::lose_many>},
    fault_scenario{"cut", "one host is cut off for a while", once<mishaps::cut>},
    fault_scenario{"cut-one-way", "one host hears nobody, or nobody hears it", once<mishaps::cut_one_way>},
    fault_scenario{"cut-pair", "two hosts are cut apart", once<mishaps::cut_pair>},
    fault_scenario{"clog", "one host's messages take long", once<mishaps::clog>},
    fault_scenario{"path-error", "one path fails, seen by one side", once<mishaps::path_error>},
    fault_scenario{"slow", "one host is slow", once<mishaps::slow>},
    fault_scenario{"clock-drift", "one host's clock runs faster or slower", once<mishaps::clock_drift>},
    fault_scenario{"clock-step", "one host's clock jumps forward", once<mishaps::clock_step>},
    fault_scenario{"random", "any of these, several at once; then all is mended and the job must end",
                   random_mishaps},
};

} // namespace

std::span<const fault_scenario> fault_scenarios() {
  return scenarios;
}

const fault_scenario* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(scenarios, name, &fault_scenario::name);
  return found == scenarios.end() ? nullptr : &*found;
}

} // namespace troupe::sim
