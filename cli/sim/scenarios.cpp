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
constexpr std::uint64_t damaged_transfers_max = 12;
constexpr std::uint64_t sums_until_broken = 20;
constexpr std::uint64_t parts_until_killed = 300; // a few steps of all workers of a small job
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

// Then the survivor is the one source, and replacements pass the state on: one of them dies while it does.
void all_but_one(strikes& s) {
  const auto survivor = std::make_shared<std::int64_t>(0);
  s.plan(
      [survivor](cluster& in, strikes& by) -> mishap::result_type {
        const auto workers = in.alive(role::worker);
        if (workers.empty()) return std::nullopt;
        *survivor = workers[by.draw(workers.size())];
        for (const auto pid : workers)
          if (pid != *survivor) in.machine().world.kill(pid, SIGKILL);
        return "all workers but process " + std::to_string(*survivor) + " are killed";
      },
      s.any_time());
  s.plan(
      [survivor](cluster& in, strikes& by) -> mishap::result_type {
        auto senders = in.machine().network.sending_bulk();
        std::erase(senders, *survivor);
        if (*survivor == 0 || senders.empty()) return std::nullopt;
        const auto struck = senders[by.draw(senders.size())];
        in.machine().world.kill(struck, SIGKILL);
        return "process " + std::to_string(struck) + " is killed while it passes the state on";
      },
      0);
}

// Inside a sum that others have begun, and will not be complete: at any part of any step, twice.
void kill_in_part(strikes& s) {
  for (int i = 0; i < 2; ++i)
    s.plan(
        [count = 1 + s.draw(parts_until_killed)](cluster& in, strikes&) {
          in.machine().collectives.kill_at_part(count);
          return std::optional{"the worker that begins part " + std::to_string(count) +
                               " of a sum from now on is killed in it"};
        },
        i == 0 ? 0 : s.any_time());
}

// As NCCL's may: twice, with everybody alive.
void broken_sum(strikes& s) {
  for (int i = 0; i < 2; ++i)
    s.plan(
        [count = 1 + s.draw(sums_until_broken)](cluster& in, strikes&) {
          in.machine().collectives.break_sum(count);
          return std::optional{"sum " + std::to_string(count) + " from now on fails at all its ranks"};
        },
        i == 0 ? 0 : s.any_time());
}

void recovery_kill(strikes& s) {
  const auto first = s.any_time();
  s.plan(mishaps::kill, first);
  s.plan(mishaps::kill, first + 1 + s.draw(recovery_events));
}

void crawl_and_kill(strikes& s) {
  const auto first = s.any_time();
  s.plan(mishaps::crawl, first);
  s.plan(mishaps::kill, first + s.draw(flap_events));
  s.plan(mishaps::kill, first + s.draw(flap_events));
}

// It comes back while the others, which are slow, have gone on without it.
void late_return(strikes& s) {
  s.plan(mishaps::slow, 0);
  s.plan(mishaps::slow, 0);
  s.plan(mishaps::stay_away, s.any_time());
}

void paths_and_kill(strikes& s) {
  const auto first = s.any_time();
  for (int i = 0; i < 4; ++i)
    s.plan(mishaps::path_error, first + s.draw(flap_events));
  s.plan(mishaps::kill, first + s.draw(flap_events));
}

// Up to two are borne; three in a row end a transfer, and with it a generation: fewer than end a job.
void damaged_transfers(strikes& s) {
  s.plan(
      [count = 1 + s.draw(damaged_transfers_max)](cluster& in, strikes&) {
        in.machine().network.damage_bulk(count);
        return std::optional{std::to_string(count) + " transfers arrive with a bit flipped"};
      },
      0);
  s.plan(mishaps::kill, s.any_time());
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

// A path between workers is open once one has given the other its state; then it fails, and is needed again.
void paths_and_throw(strikes& s) {
  s.plan(mishaps::kill, s.draw(s.events() / 4));
  for (int i = 0; i < 8; ++i)
    s.plan(i % 2 == 0 ? mishaps::path_error : mishaps::part, s.events() / 2 + s.draw(s.events() / 4));
  throw_worker(s);
  s.plan_job_fault("throw:worker=any@step=" + std::to_string(s.steps()));
}

void throw_prefetcher(strikes& s) {
  s.plan_job_fault("throw:prefetcher=any@step=" + s.any_step());
}

void planned(strikes& s) {
  constexpr std::array kinds{"kill", "segv", "exit", "stop", "oom", "skip-collective", "path-error"};
  std::string kind = kinds[s.draw(kinds.size())];
  if (kind == "stop" && s.where().hosts > 1) kind = "kill"; // nobody continues it on another host
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

// --- the job's own plan, at the seams of a worker ---

// 1 ms to 5 s: shorter and longer than a step, a lease, a hang.
std::string for_a_while(strikes& s) {
  constexpr std::array longest_ms{20U, 500U, 5000U};
  return ",for=" + std::to_string(1 + s.draw(longest_ms[s.draw(longest_ms.size())])) + "ms";
}

void planned_slow(strikes& s) {
  const std::string who = s.draw(2) == 0 ? "worker" : "prefetcher";
  s.plan_job_fault("slow:" + who + "=any@step=" + s.any_step() + ",factor=" + std::to_string(2 + s.draw(9)) +
                   (s.draw(3) == 0 ? "" : for_a_while(s)));
}

void planned_hang(strikes& s) {
  s.plan_job_fault("hang-in-collective:worker=any@step=" + s.any_step() +
                   (s.draw(3) == 0 ? "" : for_a_while(s)));
}

void planned_skip(strikes& s) {
  s.plan_job_fault("skip-collective:worker=any@step=" + s.any_step());
}

void planned_nan(strikes& s) {
  s.plan_job_fault("nan:worker=any@step=" + s.any_step());
}

void planned_oom(strikes& s) {
  s.plan_job_fault("oom:worker=any@step=" + s.any_step());
}

void planned_cut(strikes& s) {
  const std::string way = std::array{"both", "in", "out"}[s.draw(3)];
  s.plan_job_fault("cut:worker=any@step=" + s.any_step() + ",way=" + way +
                   (s.draw(3) == 0 ? "" : for_a_while(s)));
}

// Paths fail that it cannot open again: it hears no answer.
void deaf(strikes& s) {
  const auto step = 1 + s.draw(s.steps());
  s.plan_job_fault("cut:worker=any@step=" + std::to_string(step) + ",way=in");
  for (int i = 0; i < 8; ++i)
    s.plan(mishaps::path_error, s.events() * step / s.steps() + s.draw(flap_events));
}

void planned_clog(strikes& s) { // by less than a lease
  s.plan_job_fault("clog:worker=any@step=" + s.any_step() + for_a_while(s) +
                   ",factor=" + std::to_string(1 + s.draw(300)));
}

void planned_path_error(strikes& s) {
  s.plan_job_fault("path-error:worker=any@step=" + s.any_step());
}

void planned_disk_full(strikes& s) {
  s.plan_job_fault("disk-full@step=" + s.any_step() + for_a_while(s));
}

void planned_disk_slow(strikes& s) {
  s.plan_job_fault("disk-slow@step=" + s.any_step() + ",factor=" + std::to_string(2 + s.draw(9)));
}

void planned_torn_write(strikes& s) {
  s.plan_job_fault("torn-write@step=" + s.any_step());
}

void planned_clock_step(strikes& s) {
  const std::string size = std::array{"50ms", "5s", "120min"}[s.draw(3)];
  s.plan_job_fault("clock-step:worker=any@step=" + s.any_step() + ",for=" + size);
}

void nan_again(strikes& s) {
  s.plan_job_fault("nan:worker=0@step=" + s.any_step() + ",times=always");
}

// Those that a job bears or heals, whatever else strikes; the last ones may end a process, and are not drawn
// together on several hosts.
constexpr std::array seam_faults{planned_slow,       planned_skip,      planned_nan,        planned_oom,
                                 planned_clog,       planned_disk_slow, planned_clock_step, planned_hang,
                                 planned_path_error, planned_cut};
constexpr std::size_t kept_processes = 7; // the first of them

void any_seam_fault(strikes& s) {
  seam_faults[s.draw(kept_processes)](s);
}

void seams(strikes& s) {
  for (auto left = 2 + s.draw(2); left > 0; --left)
    seam_faults[s.draw(s.where().hosts == 1 ? seam_faults.size() : kept_processes)](s);
}

void mixed(strikes& s) {
  const auto kills = s.draw(random_deaths_max + 1);
  for (std::uint64_t i = 0; i < kills; ++i)
    s.plan(mishaps::kill, s.any_time());
  // Not both: an orphan that is stopped for ever rightly keeps the directory.
  const auto either = s.draw(4);
  if (either == 0) s.plan(mishaps::stop, s.any_time());
  if (either == 1) s.plan(mishaps::kill_director, s.any_time());
  if (s.draw(2) == 0) throw_worker(s);
  if (s.draw(2) == 0) throw_prefetcher(s);
  if (s.draw(2) == 0) any_seam_fault(s);
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
  s.expect().replaces_cut_off = true; // a generation may be prepared meanwhile
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
    // Whoever is stopped, or crawls, when a deadline ends may be ended for it, as if it lived.
    // The same for one that cannot reach its peer again: a path that has failed stays closed.
    if (is_any(one.name, {"clock-step", "crawl", "path-error", "part"})) s.expect().keeps_survivors = false;
    s.plan(one.strike, at);
    last = std::max(last, at);
  }
  if (s.draw(4) == 0) throw_worker(s);
  if (s.draw(4) == 0) throw_prefetcher(s);
  if (s.draw(4) == 0) any_seam_fault(s);
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

void lost_replacement(strikes& s) {
  s.plan(mishaps::kill, s.any_time());
  s.plan(mishaps::lose_replacement, 0);
}

void failed_replacement(strikes& s) {
  s.plan(mishaps::kill, s.any_time());
  s.plan(mishaps::fail_replacement, 0);
}

constexpr expectation nothing_again{.recomputed_max = 0};
constexpr expectation one_failure{.failures_max = 1};
constexpr expectation same_state{.recomputed_max = 0, .failures_max = 1};
constexpr expectation borne{.recomputed_max = 0, .failures_max = 0};
constexpr expectation borne_full{.recomputed_max = 0, .failures_max = 0, .newest_is_last = false};
// Whoever is cut off does not answer when another one fails, and is ended for that.
constexpr expectation may_cost_another{.keeps_survivors = false};
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
    fault_scenario{
        "all-but-one",
        "all workers but one are killed at once; a replacement is killed while it passes the state on",
        all_but_one},
    fault_scenario{"kill-in-part", "workers are killed between two parts of a sum (workloads with buckets)",
                   kill_in_part},
    fault_scenario{"broken-sum", "sums fail at all their ranks, and everybody lives", broken_sum},
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
    fault_scenario{"planned", "a worker dies, stops, fails or loses its path, by the job's own fault plan",
                   planned},
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
    fault_scenario{"lost-replacement", "a host loses power while it replaces a checkpoint", lost_replacement},
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
    fault_scenario{"part", "two workers cannot reach each other for a while", once<mishaps::part>},
    fault_scenario{"path-error", "one path fails, seen by one side", once<mishaps::path_error>},
    fault_scenario{"damaged-transfers", "a worker is killed, and what its replacement receives is damaged",
                   damaged_transfers},
    fault_scenario{"slow", "one host is slow", once<mishaps::slow>},
    fault_scenario{"stop-everything", "all processes stop for a while, twice in a row",
                   once<mishaps::stop_everything>, borne},
    fault_scenario{"crawl", "one host nearly stands still for a while", once<mishaps::crawl>,
                   may_cost_another},
    fault_scenario{"crawl-and-kill", "the same, and two workers are killed", crawl_and_kill,
                   may_cost_another},
    fault_scenario{"late-return", "one host comes back when the job has gone on without it", late_return},
    fault_scenario{"paths-and-kill", "several paths fail, and a worker is killed", paths_and_kill,
                   may_cost_another},
    fault_scenario{"paths-and-throw", "several paths fail, and workers throw", paths_and_throw,
                   may_cost_another},
    fault_scenario{"clock-drift", "one host's clock runs faster or slower", once<mishaps::clock_drift>},
    fault_scenario{"clock-step", "one host's clock jumps forward", once<mishaps::clock_step>},
    fault_scenario{"planned-slow", "a worker or its reader takes several times as long", planned_slow, borne},
    fault_scenario{"planned-hang", "a worker does not enter an all-reduce, for a while or for ever",
                   planned_hang, one_failure},
    fault_scenario{"planned-skip", "a worker skips an all-reduce and takes its own part for the sum",
                   planned_skip, one_failure},
    fault_scenario{"planned-nan", "a gradient is not a number, once", planned_nan, same_state},
    fault_scenario{"nan-again", "a gradient is not a number, again and again", nan_again, gives_up},
    fault_scenario{"planned-oom", "an allocation fails in a step", planned_oom, one_failure},
    fault_scenario{"planned-cut", "a worker's messages stop, one way or both, for a while or for ever",
                   planned_cut, one_failure},
    fault_scenario{"deaf", "a worker hears nobody any more, and paths fail", deaf, one_failure},
    fault_scenario{"planned-clog", "a worker's messages are late", planned_clog, borne},
    fault_scenario{"planned-path-error", "a worker's path to the director breaks", planned_path_error,
                   one_failure},
    fault_scenario{"planned-disk-full", "writing checkpoints fails for a while", planned_disk_full,
                   borne_full},
    fault_scenario{"planned-disk-slow", "writing checkpoints takes several times as long", planned_disk_slow,
                   borne},
    fault_scenario{"planned-torn-write", "a shard is written half, then its writer dies", planned_torn_write,
                   one_failure},
    fault_scenario{"planned-clock-step", "a worker's clock jumps ahead", planned_clock_step, borne},
    fault_scenario{"seams", "two or three of those at the seams", seams, may_cost_another},
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
