#include "cli/sim/cluster.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

#include <nlohmann/json.hpp>

#include "actors/director/director_actor.hpp"
#include "actors/graph/director_process.hpp"
#include "actors/graph/worker_process.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "runtime/policy/timeouts.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t events_max = 3'000'000;
constexpr auto time_max = std::chrono::minutes{10};            // virtual
constexpr auto guard_interval = std::chrono::milliseconds{50}; // between two looks at the directory's lock
constexpr auto guard_time_max = std::chrono::seconds{12};      // for processes of an earlier job to end
constexpr auto rest_time = std::chrono::milliseconds{60};      // of a worker before its leases are counted
constexpr auto restart_min = std::chrono::milliseconds{20};    // of a joiner, by its host
constexpr auto restart_max = std::chrono::milliseconds{400};
constexpr int exit_not_started = 70;
constexpr const char* endpoint_of_jobs = "sim:7000";

// A quarter of the seeds sums as hosts do that share no memory.
bool aborts_split(std::uint64_t seed) {
  return counter_rng{seed, stream_of("weather")}.bits(1) % 4 == 0;
}

// Half of the seeds have a quick network, the others a slow or an uneven one.
sim_network_settings weather_of(std::uint64_t seed) {
  const counter_rng random{seed, stream_of("weather")};
  sim_network_settings weather;
  switch (random.bits(0) % 4) {
  case 0:
    weather.delay_max = std::chrono::milliseconds{5};
    break;
  case 1:
    weather.delay_max = std::chrono::milliseconds{40};
    weather.bulk_latency_max = std::chrono::milliseconds{60};
    break;
  default:
    break;
  }
  if (random.bits(2) % 2 == 0) weather.late_completion_max = std::chrono::milliseconds{5};
  return weather;
}

std::string value_of(const process_spec& spec, std::string_view name) {
  for (auto it = spec.environment.rbegin(); it != spec.environment.rend(); ++it) {
    if (it->size() > name.size() && it->starts_with(name) && (*it)[name.size()] == '=')
      return it->substr(name.size() + 1);
  }
  return {};
}

workload laid_out(workload what, layout where) {
  what.settings.workers = where.workers;
  what.settings.external = static_cast<std::uint32_t>(where.external());
  what.settings.checkpoint_dir = checkpoint_directory;
  return what;
}

// While a replica lives; with Top-K all go back to a state that is whole.
std::uint64_t steps_lost_in(std::uint64_t seed, const job_settings& settings) {
  const std::uint64_t apart = aborts_split(seed) || settings.collective == "ring" ? 2 : 1;
  return settings.top_k == 0 ? apart : apart + settings.checkpoint_every;
}

} // namespace

// What a process sees of the outside, with the collective of the job.
class cluster::process_seams {
public:
  process_seams(cluster& in, sim_process& process, sim_process_host::child_factory children = {})
      : seams_{in.machine_, process, std::move(children)} {
    auto& env = seams_.env();
    if (in.what_.settings.collective != "ring") return;
    machine_ = "host" + std::to_string(process.host());
    sums_ = in.sums_.make_collective(in.machine_.world, process, env.network.self());
    over_network_.emplace(environment_with(env, env.network, *sums_));
  }
  [[nodiscard]] environment& env() { return over_network_ ? *over_network_ : seams_.env(); }
  [[nodiscard]] const std::string& machine() const { return machine_; }

private:
  sim_environment seams_;
  std::string machine_; // empty: all hosts share memory
  std::unique_ptr<collective> sums_;
  std::optional<environment> over_network_;
};

// --- a worker -------------------------------------------------------------------------------------------

class cluster::worker_program final : public sim_program {
public:
  worker_program(cluster& owner, sim_process& process)
      : owner_{owner}
      , process_{process}
      , seams_{owner, process}
      , door_{owner.machine_.network.make_client(process)}
      , graph_{make_graph(owner.what_, [&owner, pid = process.pid()](const batch_view& shard) {
        owner.history_.on_shard(pid, shard);
      })} {
    owner_.roles_[process.pid()] = role::worker;
    owner_.history_.watch(process.pid(), process.box);
    const auto slot = value_of(process.spec, slot_variable); // none: it joins from outside
    (void)std::from_chars(slot.data(), slot.data() + slot.size(), slot_);
    auto& env = seams_.env();
    const join_offer offer{.incarnation = env.network.self(),
                           .pid = process.pid(),
                           .host = "host" + std::to_string(process.host()),
                           .machine = seams_.machine(),
                           .program = graph_.identity().name,
                           .slot = slot_,
                           .address = env.network.local_address()};
    const auto limits = timeouts::derive(owner_.what_.settings.detect_after);
    door_->join(slot_ < 0 ? endpoint_of_jobs : value_of(process.spec, endpoint_variable), offer,
                slot_ < 0 ? limits.join_deadline : limits.orphan_grace, [this](expected<join_answer> joined) {
                  if (!joined) return end(exit_code_of(joined.failure().code), joined.failure().text);
                  begin(*joined);
                });
  }

private:
  void begin(const join_answer& joined) {
    owner_.members_.insert(process_.pid());
    life_ = owner_.ends_.size() - 1;
    auto made = worker_process::make(
        {.env = seams_.env(),
         .stage = owner_.stage_,
         .pid = process_.pid(),
         .slot = static_cast<std::uint32_t>(std::max<std::int64_t>(slot_, 0)),
         .machine = seams_.machine(),
         .joined_from_outside = slot_ < 0,
         .over = [this](int code, const std::string& cause) { code == 0 ? rest() : end(code, cause); }},
        graph_, joined);
    if (!made) return end(exit_code_of(made.failure().code), made.failure().text);
    work_ = std::move(*made);
    work_->start();
  }
  // Whoever still holds a lease gets the time to give it back.
  void rest() {
    process_.clock.call_after(rest_time, [this] {
      if (!owner_.ends_[life_].interrupted) owner_.leases_lost_ += work_->leases_out();
      process_.request_exit(0);
    });
  }
  void end(int code, const std::string& cause) {
    auto& place = process_.box->cause;
    const auto length = std::min(cause.size(), place.size() - 1);
    std::memcpy(place.data(), cause.data(), length);
    place[length] = '\0';
    process_.request_exit(code);
  }

  cluster& owner_;
  sim_process& process_;
  process_seams seams_;
  std::unique_ptr<rendezvous_client> door_;
  training_graph graph_;
  std::int64_t slot_{-1};
  std::size_t life_{0}; // of the directors, the one that it joined
  std::unique_ptr<worker_process> work_;
};

// --- the director ---------------------------------------------------------------------------------------

class cluster::director_program final : public sim_program {
public:
  director_program(cluster& owner, sim_process& process, std::size_t life)
      : owner_{owner}
      , process_{process}
      , life_{life}
      , waits_until_{process.clock.now() + guard_time_max}
      , seams_{owner, process,
               [&owner](sim_process& child) -> std::unique_ptr<sim_program> {
                 return std::make_unique<worker_program>(owner, child);
               }}
      , door_{owner.machine_.network.make_server(process, endpoint_of_jobs)}
      , graph_{make_graph(owner.what_, {})} {
    owner_.director_ = this;
    wait_for_directory();
  }
  ~director_program() override {
    if (owner_.director_ == this) owner_.director_ = nullptr;
  }
  [[nodiscard]] bool interrupt() {
    auto& end = owner_.ends_[life_];
    if (job_ == nullptr || end.over || end.interrupted) return false;
    end.interrupted = true;
    process_.loop.post([this] { job_->stop({errc::aborted, "ended by SIGTERM"}); });
    return true;
  }

private:
  void wait_for_directory() {
    const auto held = std::ranges::any_of(owner_.alive(role::worker),
                                          [this](std::int64_t pid) { return owner_.members_.contains(pid); });
    if (!held) return begin();
    if (process_.clock.now() > waits_until_)
      return end(exit_not_started, error{errc::bad_argument, "another job keeps the checkpoint directory"});
    process_.clock.call_after(guard_interval, [this] { wait_for_directory(); });
  }
  void begin() {
    if (std::exchange(owner_.generations_forgotten_, false)) owner_.history_.next_job();
    auto made = director_process::make(
        {.env = seams_.env(),
         .door = *door_,
         .stage = owner_.stage_,
         .events = owner_.events_,
         .people = owner_.people_,
         .style = progress_line::style::plain,
         .worker = {},
         .job = random_id_from<job_id>(process_.random),
         .machine = seams_.machine(),
         .external_slots = owner_.what_.settings.external,
         .over = [this](int code, const std::optional<error>& cause) { end(code, cause); }},
        graph_, owner_.what_.settings);
    if (!made) return end(exit_code_of(made.failure().code), made.failure());
    job_ = std::move(*made);
    if (auto started = job_->start(); !started) end(exit_not_started, started.failure());
  }
  void end(int code, const std::optional<error>& cause) {
    auto& end = owner_.ends_[life_];
    end.over = true;
    end.exit_code = code;
    end.cause = cause;
    if (job_ != nullptr) end.summary = job_->summary();
    process_.request_exit(code);
    if (owner_.ends_[life_].interrupted) owner_.start_director();
  }

  cluster& owner_;
  sim_process& process_;
  std::size_t life_;
  time_point waits_until_;
  process_seams seams_;
  std::unique_ptr<rendezvous_server> door_;
  training_graph graph_;
  std::unique_ptr<director_process> job_;
};

// --- the cluster ----------------------------------------------------------------------------------------

cluster::cluster(std::uint64_t seed, const workload& what, layout where,
                 std::shared_ptr<const sample_contents> samples)
    : what_{laid_out(what, where)}
    , where_{where}
    , steps_lost_max_{steps_lost_in(seed, what_.settings)}
    , history_{what_, std::move(samples)}
    , sums_{seed, history_}
    , machine_{seed, {}, weather_of(seed)} {
  machine_.collectives.set_observer(&history_);
  machine_.collectives.set_aborts_split(aborts_split(seed));
  end_within(time_max);
  machine_.disk.before_change([this](sim_process& who) {
    look_at_disk();
    const auto hook = before_change_; // may be replaced by its own call
    if (hook) hook(who);
  });
}

cluster::~cluster() = default;

void cluster::start_director(duration delay) {
  const auto life = ends_.size();
  if (life != 0 && ends_.back().over) history_.next_job(); // it ended in order: this is no successor
  ends_.emplace_back();
  begins_.push_back(machine_.world.now() + delay);
  auto& process = machine_.world.start({}, delay, [this, life](sim_process& of) {
    return std::make_unique<director_program>(*this, of, life);
  });
  ends_.back().pid = process.pid();
  roles_[process.pid()] = role::director;
  for (sim_host_id host = 1; host < where_.hosts; ++host) {
    for (std::uint32_t number = 0; number < where_.joiners; ++number) {
      const auto newest = joiners_.find({host, number});
      if (newest == joiners_.end() || machine_.world.find(newest->second) == nullptr)
        launch_joiner({host, number}, delay);
    }
  }
}

// --- hosts whose workers join from outside --------------------------------------------------------------

void cluster::launch_joiner(joiner which, duration delay) {
  auto& world = machine_.world;
  const auto host = which.first;
  if (const auto dark = dark_until_.find(host); dark != dark_until_.end())
    delay = std::max(delay, dark->second - world.now());
  auto& process = world.start(
      {}, delay, [this](sim_process& of) { return std::make_unique<worker_program>(*this, of); }, host);
  roles_[process.pid()] = role::worker;
  joiners_[which] = process.pid();
  world.on_end(process.pid(), [this, which, life = ends_.size()](const process_exit& how) {
    joiner_ended(which, life, how);
  });
}

// As a service manager would: what failed is started again; what ended well is not, but for another job.
void cluster::joiner_ended(joiner which, std::size_t life, const process_exit& how) {
  const bool well = !how.signalled && how.code == 0 && life == ends_.size();
  if (well || ends_.back().over) return;
  launch_joiner(which, machine_.world.draw_between(restart_min, restart_max));
}

// What was reported as written survives a loss of power; a later version is as good.
void cluster::look_for_reported() {
  const auto& text = events_.text();
  const auto place = text.rfind(R"("event":"checkpoint_written")");
  if (place == std::string::npos) return;
  const auto begin = text.rfind('\n', place) + 1; // 0 for the first line
  const auto event = nlohmann::json::parse(text.substr(begin, text.find('\n', place) - begin));
  const std::uint64_t step = event.at("step");
  const auto there = catalog{machine_.disk, checkpoint_directory}.list();
  const auto as_new = [step](const version_entry& one) { return one.step.value() >= step; };
  if (there && std::ranges::any_of(there->versions, as_new)) return;
  disk_findings_.push_back("the checkpoint of step " + std::to_string(step) +
                           " was reported as written and did not survive a loss of power");
}

void cluster::lose_power(sim_host_id host, duration away, const std::function<bool(std::size_t)>& keep) {
  auto& world = machine_.world;
  const auto until = world.now() + away;
  dark_until_[host] = until;
  world.hosts().cut({.from = host}, until);
  world.hosts().cut({.to = host}, until);
  machine_.disk.lose_power(host, keep);
  look_for_reported();
  bool director = false;
  for (const auto pid : world.alive()) {
    const auto* process = world.find(pid);
    if (process->host() != host) continue;
    director = director || roles_[pid] == role::director;
    world.kill(pid, SIGKILL);
  }
  if (director) start_director(away);
}

// --- the run --------------------------------------------------------------------------------------------

void cluster::look_at_disk() {
  auto& disk = machine_.disk;
  const auto names = disk.list(checkpoint_directory);
  std::set<std::string> now;
  for (const auto& name : names ? *names : std::vector<std::string>{}) {
    const auto parsed = parse_version_name(name);
    const bool retired = parsed && parsed->state == version_state::retired;
    if (!parsed || (parsed->state != version_state::whole && !retired)) continue;
    now.insert(name);
    if (published_.contains(name) && !retired) continue;
    const auto path = join_path(checkpoint_directory, name);
    const auto version = read_manifest(disk, path);
    const auto whole = version ? verify_files(disk, path, *version) : expected<void>{version.failure()};
    if (retired && retired_.try_emplace(name, whole.has_value()).first->second && !whole)
      disk_findings_.push_back(path + " was whole and does not verify: " + whole.failure().text);
    if (!whole && !retired)
      disk_findings_.push_back(path + " is published and does not verify: " + whole.failure().text);
  }
  published_ = std::move(now);
}

// Of directors, the newest: one before it may still be on its way out.
std::vector<std::int64_t> cluster::alive(role which) const {
  std::vector<std::int64_t> pids;
  for (const auto pid : machine_.world.alive()) {
    if (which == role::director && pid != ends_.back().pid) continue;
    // A process that was started and has not begun yet is a worker.
    const auto known = roles_.find(pid);
    if ((known == roles_.end() ? role::worker : known->second) == which) pids.push_back(pid);
  }
  return pids;
}

bool cluster::interrupt() {
  return director_ != nullptr && director_->interrupt();
}

bool cluster::over() const {
  return ends_.back().over && machine_.world.alive().empty();
}

bool cluster::run(const between& strike) {
  const auto stop = [&] {
    if (strike) strike(*this);
    return over() || machine_.world.now() > deadline_;
  };
  (void)machine_.world.run_until(stop, events_max);
  look_at_disk();
  return over();
}

} // namespace troupe::sim
