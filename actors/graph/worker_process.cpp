#include "actors/graph/worker_process.hpp"

#include <algorithm>
#include <csignal>

#include <caf/all.hpp>

#include "actors/checkpointer/checkpointer_actor.hpp"
#include "actors/contracts/local_messages.hpp"
#include "actors/graph/handout.hpp"
#include "actors/prefetcher/prefetcher_actor.hpp"
#include "actors/remote/codec_table.hpp"
#include "actors/remote/control_channel.hpp"
#include "actors/remote/sums_channel.hpp"
#include "actors/remote/wire_message.hpp"
#include "actors/supervisor/supervisor_actor.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "actors/worker/worker_actor.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/base/units.hpp"
#include "runtime/checkpoint/bit_flip.hpp"
#include "runtime/faults/faulty_environment.hpp"
#include "runtime/policy/failure_detector.hpp"
#include "runtime/policy/silence_watch.hpp"
#include "runtime/session/session_environment.hpp"
#include "runtime/train/state_digest.hpp"

namespace troupe {

namespace {

constexpr int exit_orphaned = 4;

trainer_settings trainer_settings_of(const training_graph& graph, const job_settings& settings,
                                     const dataset& data) {
  trainer_settings out{.program = graph.identity().name,
                       .seed = settings.seed,
                       .steps = {.shards = settings.shards,
                                 .global_batch = settings.global_batch,
                                 .accumulate = settings.accumulate,
                                 .bucket_bytes = settings.bucket,
                                 .wire = settings.wire_type(),
                                 .top_k = settings.top_k,
                                 .whole_every = settings.checkpoint_every,
                                 .clip_norm = graph.clip_norm(),
                                 .rate = resolved(graph.rate(), *settings.steps)},
                       .rule = graph.rule(),
                       .last_step = step_id{*settings.steps},
                       .ready_batches = graph.prefetching().ready_batches,
                       .features = data.features()};
  if (!settings.checkpoint_dir.empty()) out.checkpoint_every = settings.checkpoint_every;
  return out;
}

session_settings sessions_of(const job_settings& settings) {
  const auto limits = timeouts::derive(settings.detect_after);
  return {.bridge_for = limits.lease, .connect_for = limits.handshake_deadline};
}

std::unique_ptr<faulty_environment> faulty_seams(environment& env, const join_answer& joined,
                                                 const fault_plan& plan) {
  const bool needed = std::ranges::any_of(plan, [](const fault& f) { return strikes_seam(f.kind); });
  return needed ? std::make_unique<faulty_environment>(env, joined.director) : nullptr;
}

} // namespace

struct worker_process::state final : bulk_listener {
  state(const worker_outside& from, const training_graph& what, const join_answer& answer, job_handout given)
      : true_clock{from.env.clock}
      , faulty{faulty_seams(from.env, answer, given.settings.faults)}
      , sessions{faulty ? faulty->env() : from.env, sessions_of(given.settings)}
      , outside{sessions.env(),           from.stage, from.pid, from.slot, from.machine,
                from.joined_from_outside, from.over}
      , graph{what}
      , joined{answer}
      , handout{std::move(given)}
      , same_host{from.machine == handout.machine} {}
  ~state() override {
    if (timer != 0) outside.env.clock.cancel(timer);
    *alive = false;
    neighbours->forget();
    supervisor = nullptr;
    if (runtime) (void)runtime->stop(); // the last turns of actors may still use the office
    if (sums) {
      outside.env.collectives.set_unreachable_handler({});
      outside.env.collectives.attach(nullptr);
    }
    sums.reset();
    office.reset();
    runtime.reset();
  }

  expected<void> prepare();
  [[nodiscard]] expected<std::shared_ptr<const dataset>>
  read(const source_factory& source, const std::string& locator, const std::string& digest) const;
  void open_office();
  void supervise();
  [[nodiscard]] std::vector<supervised_child> children();
  void on_child_started(const child_change& what);
  void on_checkpoint_settled(const wire::checkpoint_report& report);
  [[nodiscard]] bool outsider() const { return outside.joined_from_outside; }
  [[nodiscard]] fault_injector::announce announce_strikes();
  template <class Message>
  void tell_worker(Message message) {
    if (neighbours->worker) caf::anon_send(*neighbours->worker, std::move(message));
  }
  void report_ready();
  void on_worker_restarted(const std::string& cause);
  void beat();
  void look_for_silent(const progress& now);
  void accuse(wire::peer_unreachable what);
  void tell_accusations();
  void finish(int code, const std::string& cause);
  void close();
  void hear(incarnation_id from, std::shared_ptr<const wire::control> message);

  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override {
    return neighbours->core == nullptr ? std::span<std::byte>{}
                                       : neighbours->core->on_state_announced(from, what);
  }
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override {
    tell_worker(bulk_received{from, transfer, std::move(result)});
  }

  const clock_seam& true_clock;
  std::unique_ptr<faulty_environment> faulty; // none: no fault of the plan strikes a seam
  session_environment sessions;
  worker_outside outside;
  const training_graph& graph;
  join_answer joined;
  job_handout handout;
  const bool same_host; // as the director
  timeouts limits;
  std::shared_ptr<const dataset> train, test;
  std::unique_ptr<trainer> compute;
  codec_table codecs;
  std::unique_ptr<actor_runtime> runtime;
  std::optional<silence_watch> silences;
  std::vector<wire::peer_unreachable> accusations_held; // until the director is heard
  bulk_router bulks;
  std::unique_ptr<post_office> office;
  std::unique_ptr<sums_channel> sums; // lent to the collective
  std::shared_ptr<worker_neighbours> neighbours{std::make_shared<worker_neighbours>()};
  caf::actor supervisor;
  std::optional<orphan_watch> orphaned;
  step_id progress_told;
  timer_id timer{0};
  std::shared_ptr<bool> alive{std::make_shared<bool>(true)};
  generation_id newest_generation; // that the director has asked this process to take part in
  bool over{false};
  int exit_code{0};
  std::string exit_cause;
};

worker_process::worker_process(std::unique_ptr<state> made)
    : state_{std::move(made)} {}
worker_process::~worker_process() = default;

expected<std::unique_ptr<worker_process>>
worker_process::make(const worker_outside& outside, const training_graph& graph, const join_answer& joined) {
  auto given = decode_handout(joined.settings);
  if (!given) return given.failure();
  auto made = std::make_unique<state>(outside, graph, joined, std::move(*given));
  if (auto ready = made->prepare(); !ready) return ready.failure();
  return std::unique_ptr<worker_process>{new worker_process{std::move(made)}};
}

expected<void> worker_process::state::prepare() {
  const auto& settings = handout.settings;
  limits = timeouts::derive(settings.detect_after);
  if (!same_host) handout.started_ns = to_ns(true_clock.now()); // the director's clock says nothing here
  auto data = read(graph.train_source(), handout.train_locator, handout.train_digest);
  if (!data) return data.failure();
  train = std::move(*data);
  if (graph.test_source()) {
    auto also = read(graph.test_source(), handout.test_locator, handout.test_digest);
    if (!also) return also.failure();
    test = std::move(*also);
  }
  auto& env = outside.env;
  auto faults = std::make_unique<fault_injector>(
      settings.faults, settings.seed,
      fault_injector::means{true_clock, env.self, env.box, faulty ? &faulty->switches() : nullptr,
                            [&files = env.files, directory = settings.checkpoint_dir](
                                const std::string& which) { (void)flip_bit(files, directory, which); },
                            outsider() ? announce_strikes() : fault_injector::announce{}});
  auto made =
      trainer::make(env, trainer_settings_of(graph, settings, *train), graph.factory(), std::move(faults));
  if (!made) return made.failure();
  compute = std::move(*made);
  open_office();
  return {};
}

// On the director's host the decoded dataset lies in memory; elsewhere it is decoded again, once a worker.
expected<std::shared_ptr<const dataset>> worker_process::state::read(const source_factory& source,
                                                                     const std::string& locator,
                                                                     const std::string& digest) const {
  const auto from = source(handout.settings);
  if (same_host) return from.open(outside.stage, locator);
  auto staged = from.stage(outside.env.files, outside.stage);
  if (!staged) return staged.failure();
  if (staged->data->digest() == digest) return staged->data;
  return error{errc::bad_data, "dataset '" + staged->data->name() + "' has the digest " +
                                   staged->data->digest() + " here and " + digest +
                                   " where the director is; accepted: the same files on every host"};
}

void worker_process::state::open_office() {
  auto& env = outside.env;
  runtime = std::make_unique<actor_runtime>(env.loop, env.clock, env.log);
  office =
      std::make_unique<post_office>(*runtime, env.network, codecs, post_office_settings{.job = joined.job});
  office->set_bulk_handler(&bulks);
  bulks.serve(bulk_channel::state, this);
  sums = std::make_unique<sums_channel>(*office, bulks, env.network);
  silences.emplace(static_cast<std::uint32_t>(limits.lease / limits.heartbeat_interval));
  env.collectives.attach(sums.get());
  env.collectives.set_unreachable_handler(
      [this](generation_id generation, incarnation_id who, const error& cause) {
        accuse({generation, who, cause.text});
      });
  office->set_control_handler(
      [this](incarnation_id from, std::uint64_t type, std::span<const std::byte> body) {
        if (type == sums_channel::type) return sums->hear(from, body);
        if (type == sums_channel::question) return void(sums->answer_to(from));
        if (type == sums_channel::answer) return silences->heard(from);
        if (type != control_type) return;
        if (auto message = wire::decode(body))
          hear(from, std::make_shared<const wire::control>(std::move(*message)));
      });
  office->set_path_lost_handler([this](incarnation_id peer, const error& cause) {
    if (probe<"worker.director_path_lost">::when(peer == joined.director))
      compute->abort(); // hold; the orphan watch decides
    sums->path_lost(peer, cause);
    tell_worker(path_lost{peer, cause});
  });
}

// --- the local supervisor's children --------------------------------------------------------------------

std::vector<supervised_child> worker_process::state::children() {
  const prefetcher_parts prefetch{outside.env.reader, train, compute->batches(), &compute->faults(),
                                  handout.settings.accumulate};
  const checkpointer_parts keep{.loop = outside.env.loop,
                                .storage_thread = outside.env.storage_thread,
                                .files = outside.env.files,
                                .clock = outside.env.clock,
                                .settings = {.directory = handout.settings.checkpoint_dir,
                                             .layout = compute->layout(),
                                             .self = outside.env.network.self(),
                                             .retention = {.keep_last = handout.settings.keep}},
                                .state_digest = compute->snapshot_digest(),
                                .settled = [this, here = alive](const wire::checkpoint_report& report) {
                                  if (*here) on_checkpoint_settled(report);
                                }};
  const worker_parts work{.outside = outside.env,
                          .office = *office,
                          .compute = *compute,
                          .director = joined.director,
                          .settings = {joined.job, test, time_from_ns(handout.started_ns)},
                          .layout = compute->layout(),
                          .flight_directory = handout.settings.flight,
                          .neighbours = neighbours,
                          .leave = [this](const std::string& cause) { finish(0, cause); }};
  std::vector<supervised_child> out{
      {{.id = "prefetcher"},
       [prefetch](caf::actor_system& system) { return spawn_prefetcher(system, prefetch); }},
      {{.id = "checkpointer"},
       [keep](caf::actor_system& system) { return spawn_checkpointer(system, keep); }},
      {{.id = "worker"}, [work](caf::actor_system& system) { return spawn_worker(system, work); }}};
  for (const auto& user : graph.actors()) {
    if (user.where == placement::every_worker) out.push_back({{.id = user.name}, user.make});
  }
  return out;
}

// A failure that the worker could not tell itself (an exception in its actor) is told here.
void worker_process::state::on_worker_restarted(const std::string& cause) {
  if (!std::exchange(neighbours->failure_told, false)) {
    (void)send_control(*office, joined.director,
                       wire::actor_failed{.generation = newest_generation,
                                          .actor = "worker",
                                          .step = compute->progress_now().step_started.value(),
                                          .text = cause});
  }
  tell_worker(worker_restarted{newest_generation});
}

// From the device's or the reader's thread.
fault_injector::announce worker_process::state::announce_strikes() {
  return [this, here = alive](std::size_t fault) {
    outside.env.loop.post([this, here, fault] {
      if (*here && office)
        (void)send_control(*office, joined.director, wire::fault_struck{static_cast<std::uint32_t>(fault)});
    });
  };
}

// The worker that took the snapshot may have failed meanwhile: the slot is free all the same.
void worker_process::state::on_checkpoint_settled(const wire::checkpoint_report& report) {
  if (neighbours->core != nullptr) return neighbours->core->on_checkpoint_settled(report);
  (void)send_control(*office, joined.director, report);
  compute->resume();
}

void worker_process::state::supervise() {
  supervisor =
      spawn_supervisor(runtime->system(), {.settings = {.intensity = graph.intensity()},
                                           .children = children(),
                                           .listener = [this, here = alive](const child_change& what) {
                                             if (*here)
                                               on_child_started(what); // the end may come before the start
                                           }});
  supervisor->attach_functor([this, here = alive](const caf::error& reason) {
    if (!*here) return;
    if (probe<"worker.supervisor_gave_up">::when(!over)) {
      exit_code = exit_code_of(errc::budget_spent);
      exit_cause = to_troupe(reason).text;
    }
    over = true;
    outside.env.loop.post([this, here] {
      if (*here) close();
    });
  });
}

// Handles change with every life; who lost its neighbour is told, and so is the director.
void worker_process::state::on_child_started(const child_change& what) {
  const bool restarted = static_cast<bool>(what.before);
  const auto cause = what.cause ? what.cause->text : std::string{"restarted with its group"};
  if (what.id == "prefetcher") {
    neighbours->prefetcher = std::make_unique<caf::actor>(what.after);
    if (restarted) tell_worker(prefetcher_restarted{cause});
  } else if (what.id == "checkpointer") {
    neighbours->checkpointer = std::make_unique<caf::actor>(what.after);
  } else if (what.id == "worker") {
    neighbours->worker = std::make_unique<caf::actor>(what.after);
    restarted ? on_worker_restarted(cause) : report_ready();
  } else {
    (void)office->publish(what.id, what.after);
  }
}

// --- signs of life --------------------------------------------------------------------------------------

void worker_process::start() {
  auto& s = *state_;
  auto path = s.outside.env.network.connect(s.joined.director, s.joined.address);
  if (!path) return s.outside.over(exit_orphaned, path.failure().text);
  s.orphaned.emplace(s.limits, s.outside.env.clock.now());
  s.supervise();
  s.beat();
}

// A path on which nothing arrives fails by itself only after minutes; a sum waits for all of them.
void worker_process::state::look_for_silent(const progress& now) {
  const bool waits = now.doing == activity::in_collective && now.doing_for > limits.lease / 2;
  const auto found = silences->look(waits, sums->peers());
  for (const auto who : found.ask)
    (void)sums->ask(who);
  for (const auto who : found.silent) {
    probe<"worker.peer_silent">::hit();
    accuse({newest_generation, who, "it does not answer"});
  }
  tell_accusations();
}

// A path that has ended stays so; but who does not hear its director may be the one that is cut off (SL-4).
void worker_process::state::accuse(wire::peer_unreachable what) {
  std::erase_if(accusations_held, [&what](const wire::peer_unreachable& held) { // of generations that ended
    return held.generation != what.generation;
  });
  accusations_held.push_back(std::move(what));
  tell_accusations();
}

void worker_process::state::tell_accusations() {
  if (accusations_held.empty()) return;
  if (probe<"worker.accusation_held">::when(!silences->hears_director())) return;
  for (const auto& what : accusations_held)
    (void)send_control(*office, joined.director, what);
  accusations_held.clear();
}

void worker_process::state::report_ready() {
  (void)send_control(*office, joined.director,
                     wire::worker_ready{outside.slot, outside.pid, outside.env.compute.name()});
}

std::size_t worker_process::leases_out() const {
  return state_->compute->leases_out();
}

void worker_process::state::beat() {
  const auto now = compute->progress_now();
  const auto generation = neighbours->core == nullptr ? generation_id{} : neighbours->core->generation();
  (void)send_control(*office, joined.director,
                     wire::heartbeat{generation, now.step_started.value(), now.step_applied,
                                     static_cast<std::uint8_t>(now.doing), now.doing_for, now.step_busy,
                                     now.arrivals, static_cast<std::uint8_t>(now.call), now.call_number});
  look_for_silent(now);
  tell_worker(tick{});
  if (now.step_applied > progress_told) {
    progress_told = now.step_applied;
    caf::anon_send(supervisor, work_progressed{});
  }
  if (probe<"worker.orphaned">::when(orphaned->orphaned(outside.env.clock.now()))) {
    return finish(exit_orphaned,
                  "the director is gone for longer than " + format_duration(limits.orphan_grace));
  }
  timer = outside.env.clock.call_after(limits.heartbeat_interval, [this] { beat(); });
}

void worker_process::state::hear(incarnation_id from, std::shared_ptr<const wire::control> message) {
  if (from == joined.director) silences->heard_director();
  if (from == joined.director && orphaned) orphaned->beat(outside.env.clock.now());
  if (const auto* beat = std::get_if<wire::director_heartbeat>(message.get())) {
    compute->faults().hear(beat->fired_faults);
    return outsider() ? compute->resume() : void();
  }
  if (const auto* asked = std::get_if<wire::prepare_generation>(message.get()))
    newest_generation = asked->generation;
  tell_worker(control_received{from, std::move(message)});
}

// Stops the children in reverse order; the supervisor's end leads to the process's.
void worker_process::state::finish(int code, const std::string& cause) {
  if (over) return;
  over = true;
  exit_code = code;
  exit_cause = cause;
  outside.env.clock.cancel(std::exchange(timer, 0));
  caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
}

// No actor is left; the device may still be inside a step.
void worker_process::state::close() {
  outside.env.clock.cancel(std::exchange(timer, 0));
  compute->close([this] { outside.over(exit_code, exit_cause); });
  timer = outside.env.clock.call_after(limits.shutdown_grace, [this] {
    outside.env.self.raise_signal(SIGKILL); // the device hangs: nobody waits for it
  });
}

} // namespace troupe
