#include "cli/sim/checkers.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/train/state_digest.hpp"
#include "runtime/train/top_k.hpp"

namespace troupe::sim {
namespace {

using findings = std::vector<std::string>;

// What the workload's model declares, and how its state is named.
struct state_shape {
  std::unique_ptr<parameter_store> store;
  state_layout layout;
  std::string rule, schedule;
};

state_shape shape_of(const workload& what) {
  const auto graph = make_graph(what, {});
  state_shape shape{std::make_unique<parameter_store>(what.settings.seed), {}, {}, {}};
  const auto kernels = graph.factory()(*shape.store);
  auto rule = make_optimizer(graph.rule());
  freeze_state(*shape.store, **rule, what.settings.shards, what.settings.top_k);
  shape.layout = layout_of(shape.store->layout(), graph.identity().name);
  shape.rule = (*rule)->text();
  shape.schedule = text_of(resolved(graph.rate(), what.steps()));
  return shape;
}

// False: it did not get to an end of which more could be asked.
bool check_end(cluster& over, const reference& known, int exit_code, findings& out) {
  const auto& end = over.ends().back();
  if (!end.over) {
    out.emplace_back("the job did not end within its budget of events and of virtual time");
    return false;
  }
  for (const auto pid : over.machine().world.alive())
    out.push_back("process " + std::to_string(pid) + " is left over");
  if (end.exit_code != exit_code) {
    out.push_back("the job ended with exit code " + std::to_string(end.exit_code) + ": " +
                  (end.cause ? end.cause->text : "no cause"));
    return false;
  }
  if (exit_code != 0) return false;
  if (end.summary.state_digest != known.state_digest || end.summary.weights_digest != known.weights_digest)
    out.push_back("the final state is " + end.summary.state_digest + ", without faults it is " +
                  known.state_digest);
  return true;
}

// What the summary says of its failures makes sense: time runs forward, and nobody who survived was killed.
void check_failures(cluster& over, const expectation& wanted, findings& out) {
  const auto& summary = over.ends().back().summary;
  for (const auto& failure : summary.failures) {
    if (failure.recovered_ms.value_or(0) < 0 || failure.detected_ms.value_or(0) < 0)
      out.push_back("failure '" + failure.cause + "': recovered after " +
                    std::to_string(failure.recovered_ms.value_or(0)) + " ms");
  }
  if (wanted.failures_max && summary.failures.size() > *wanted.failures_max)
    out.push_back(std::to_string(summary.failures.size()) + " failures, at most " +
                  std::to_string(*wanted.failures_max) + " can come of what struck");
  if (wanted.keeps_survivors && !summary.survivors_kept)
    out.emplace_back("a surviving worker lost its process");
}

// While a replica lives, a failure costs the step in flight at most.
class replica_watch {
public:
  explicit replica_watch(std::uint64_t steps_lost_max)
      : steps_lost_max_{steps_lost_max} {}
  void hear(const nlohmann::json& event, findings& out) {
    const auto& name = event.at("event");
    if (name == "job_started") *this = replica_watch{steps_lost_max_};
    if (name == "worker_ready") ready_.insert(event.at("pid").get<std::int64_t>());
    if (name == "failure_detected") lose(event.at("pid"));
    if (name == "generation_started") members_[event.at("generation")] = ready_;
    if (name == "first_step_applied") began(event.at("generation"));
    if (name != "resumed" || !event.contains("steps_lost")) return;
    const std::uint64_t steps = event.at("steps_lost");
    const bool from_replica = event.at("source") == "peer" || event.at("source") == "memory";
    if (from_replica && steps > steps_lost_max_ && !all_lost_)
      out.push_back(std::to_string(steps) + " steps lost although a replica lived");
  }

private:
  void lose(std::int64_t pid) {
    ready_.erase(pid);
    for (auto& [generation, members] : members_)
      members.erase(pid);
  }
  void began(std::uint64_t generation) {
    all_lost_ = std::ranges::any_of(members_, [](const auto& one) { return one.second.empty(); });
    std::erase_if(members_, [generation](const auto& one) { return one.first < generation; });
  }

  std::uint64_t steps_lost_max_;
  std::set<std::int64_t> ready_;                            // processes
  std::map<std::uint64_t, std::set<std::int64_t>> members_; // that still live, by generation
  bool all_lost_{false};                                    // of some generation before the newest that began
};

// Failures of one slot within the period of the intensity are no more than it admits (RI-1).
class intensity_watch {
public:
  explicit intensity_watch(const intensity_policy& policy)
      : policy_{policy} {}
  void hear(const nlohmann::json& event, findings& out) {
    if (event.at("event") == "job_started") recent_.clear();
    if (event.at("event") != "failure_detected") return;
    const std::uint32_t rank = event.at("rank");
    auto& times = recent_[rank];
    const double now = event.at("t");
    times.push_back(now);
    while (now - times.front() >= to_s(policy_.period))
      times.pop_front();
    if (times.size() > policy_.restarts_max)
      out.push_back("worker " + std::to_string(rank) + " failed " + std::to_string(times.size()) +
                    " times within " + std::to_string(to_s(policy_.period)) + " s, and the job went on");
  }

private:
  intensity_policy policy_;
  std::map<std::uint32_t, std::deque<double>> recent_;
};

void check_events(cluster& over, const expectation& wanted, findings& out) {
  intensity_watch intensity{make_graph(over.what(), {}).intensity()};
  replica_watch replicas{over.steps_lost_max()};
  std::istringstream lines{over.events()};
  std::uint64_t newest = 0;
  bool finished = false;
  bool over_in_order = false;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_discarded()) {
      out.push_back("an event is no JSON object: " + line);
      continue;
    }
    replicas.hear(event, out);
    intensity.hear(event, out);
    const auto& name = event.at("event");
    if (name == "job_started" && (over_in_order || wanted.generations_anew)) newest = 0; // no successor
    finished = name == "job_finished";
    over_in_order = finished || (over_in_order && name != "job_started");
    if (name != "generation_started") continue;
    const std::uint64_t generation = event.at("generation");
    if (generation <= newest)
      out.push_back("generation " + std::to_string(generation) + " starts after generation " +
                    std::to_string(newest));
    newest = std::max(newest, generation);
  }
  if (!finished) out.emplace_back("the last event is not job_finished");
}

void check_checkpoint(cluster& over, const reference& known, const expectation& wanted, findings& out) {
  auto shape = shape_of(over.what());
  const catalog versions{over.machine().disk, checkpoint_directory};
  const auto search = versions.newest_verified(shape.layout);
  if (!search || !search->found) {
    if (wanted.newest_is_last) out.emplace_back("no checkpoint verifies");
    return;
  }
  for (const auto& one : search->rejected)
    out.push_back(one.path + " is published and does not verify: " + one.cause.text);
  const auto& found = *search->found;
  const auto step = found.step.value();
  if (wanted.newest_is_last && step != over.what().steps())
    out.push_back("the newest checkpoint is of step " + std::to_string(step));
  const auto right = known.checkpoints.find(step);
  if (right == known.checkpoints.end() || found.manifest.metadata.state_digest != right->second)
    out.push_back("the checkpoint of step " + std::to_string(step) +
                  " says another state than without faults");
  const auto loaded = load_version(over.machine().disk, found, shape.layout, shape.store->bytes());
  if (!loaded) {
    out.push_back("the newest checkpoint does not load: " + loaded.failure().text);
    return;
  }
  const auto digest = state_digest(shape.store->layout(), shape.store->arena(), shape.rule, shape.schedule,
                                   {step, step * over.what().samples_per_step()});
  if (digest != loaded->state_digest)
    out.push_back("the checkpoint of step " + std::to_string(step) + " holds another state than it says");
}

} // namespace

reference reference_of(cluster& from) {
  reference out;
  const auto& summary = from.ends().back().summary;
  out.weights_digest = summary.weights_digest;
  out.state_digest = summary.state_digest;
  out.events = from.machine().world.events();
  const catalog versions{from.machine().disk, checkpoint_directory};
  const auto listing = versions.list();
  if (!listing) return out;
  for (const auto& entry : listing->versions) {
    const auto version = read_manifest(from.machine().disk, entry.path);
    if (version) out.checkpoints[entry.step.value()] = version->metadata.state_digest;
  }
  return out;
}

findings check(cluster& over, const reference& known, const expectation& wanted) {
  findings out = over.disk_findings();
  if (!check_end(over, known, wanted.exit_code, out)) return out;
  for (auto& one : over.samples().check())
    out.push_back(std::move(one));
  check_events(over, wanted, out);
  check_failures(over, wanted, out);
  check_checkpoint(over, known, wanted, out);
  if (over.leases_lost() != 0) out.push_back(std::to_string(over.leases_lost()) + " leases are lost");
  const auto again = over.samples().recomputed();
  const auto& settings = over.what().settings;
  const auto failures = over.ends().back().summary.failures.size();
  const auto back = settings.top_k == 0 ? 0 : failures * settings.accumulate * settings.checkpoint_every;
  if (wanted.recomputed_max && again > *wanted.recomputed_max + back)
    out.push_back(std::to_string(again) + " batches were computed again, at most " +
                  std::to_string(*wanted.recomputed_max + back) + " are allowed");
  return out;
}

} // namespace troupe::sim
