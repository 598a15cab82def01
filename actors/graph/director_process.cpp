#include "actors/graph/director_process.hpp"

#include <caf/all.hpp>

#include "actors/contracts/director_messages.hpp"
#include "actors/contracts/local_messages.hpp"
#include "actors/director/director_actor.hpp"
#include "actors/director/journal.hpp"
#include "actors/graph/handout.hpp"
#include "actors/remote/codec_table.hpp"
#include "actors/remote/control_channel.hpp"
#include "actors/remote/wire_message.hpp"
#include "actors/reporter/reporter_actor.hpp"
#include "actors/supervisor/supervisor_actor.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/base/units.hpp"
#include "runtime/checkpoint/directory_guard.hpp"
#include "runtime/session/session_environment.hpp"
#include "runtime/train/shard_pass.hpp"
#include "runtime/train/top_k.hpp"

namespace troupe {

namespace {

struct model_shape {
  state_layout layout;
  collective_shape sums;
};

// Declares the model's parameters without giving them memory.
expected<model_shape> shape_of(const training_graph& graph, const job_settings& settings) {
  auto rule = make_optimizer(graph.rule());
  if (!rule) return rule.failure();
  parameter_store store{settings.seed};
  try {
    const auto kernels = graph.factory()(store);
    freeze_state(store, **rule, settings.shards, settings.top_k);
  } catch (const std::exception& problem) {
    return error{errc::bad_argument, std::string{"the model cannot be built: "} + problem.what()};
  }
  return model_shape{layout_of(store.layout(), graph.identity().name),
                     sum_shape(store.layout(), settings.shards, settings.wire_type(), settings.top_k)};
}

// The number of optimizer steps of the job, from --steps or --epochs.
expected<std::uint64_t> steps_of(const job_settings& settings, const dataset& data) {
  if (settings.steps) return *settings.steps;
  const auto per_step = std::uint64_t{settings.global_batch} * settings.accumulate;
  const auto steps = settings.epochs.value_or(1) * data.samples() / per_step;
  if (steps == 0) {
    return error{errc::bad_argument, "--global-batch " + std::to_string(settings.global_batch) +
                                         ": the dataset has only " + std::to_string(data.samples()) +
                                         " samples; accepted: at most that many"};
  }
  return steps;
}

} // namespace

struct director_process::state {
  state(const director_outside& from, const training_graph& what, job_settings with)
      : settings{std::move(with)}
      , limits{timeouts::derive(settings.detect_after)}
      , sessions{from.env, {.bridge_for = limits.lease, .connect_for = limits.handshake_deadline}}
      , outside{sessions.env(), from.door, from.stage,   from.events,         from.people, from.style,
                from.worker,    from.job,  from.machine, from.external_slots, from.lanes,  from.over}
      , graph{what} {}
  ~state() {
    if (timer != 0) outside.env.clock.cancel(timer);
    *alive = false;
    if (runtime) (void)runtime->stop(); // the last turns of actors may still use the office
    office.reset();
    runtime.reset();
  }

  expected<void> prepare();
  void compose(const model_shape& shape, const fired_faults& fired, generation_id before);
  void supervise();
  void on_child_started(const child_change& what);
  void tick_again();
  [[nodiscard]] expected<join_answer> admit(const join_offer& offer);
  void finish(int code, const std::optional<error>& cause);

  job_settings settings;
  timeouts limits;
  session_environment sessions;
  director_outside outside;
  const training_graph& graph;
  staged_source train, test;
  time_point started;
  codec_table codecs;
  std::unique_ptr<actor_runtime> runtime;
  std::unique_ptr<post_office> office;
  std::shared_ptr<job_report> report;
  std::shared_ptr<director_core*> core{std::make_shared<director_core*>(nullptr)};
  std::optional<director_parts> parts; // until the director starts
  caf::actor root, director;
  std::shared_ptr<caf::actor> reporter{std::make_shared<caf::actor>()}; // of the reporter's current life
  timer_id timer{0};
  std::shared_ptr<bool> alive{std::make_shared<bool>(true)};
  bool over{false};
};

director_process::director_process(std::unique_ptr<state> made)
    : state_{std::move(made)} {}
director_process::~director_process() = default;

expected<std::unique_ptr<director_process>>
director_process::make(const director_outside& outside, const training_graph& graph, job_settings settings) {
  auto made = std::make_unique<state>(outside, graph, std::move(settings));
  if (auto ready = made->prepare(); !ready) return ready.failure();
  return std::unique_ptr<director_process>{new director_process{std::move(made)}};
}

expected<void> director_process::state::prepare() {
  if (auto valid = graph.validate(); !valid) return valid;
  if (auto valid = limits.validate(); !valid) return valid;
  auto staged = graph.train_source()(settings).stage(outside.env.files, outside.stage);
  if (!staged) return staged.failure();
  train = std::move(*staged);
  if (graph.test_source()) {
    auto also = graph.test_source()(settings).stage(outside.env.files, outside.stage);
    if (!also) return also.failure();
    test = std::move(*also);
  }
  auto steps = steps_of(settings, *train.data);
  if (!steps) return steps.failure();
  settings.steps = *steps;
  settings.epochs.reset();
  auto shape = shape_of(graph, settings);
  if (!shape) return shape.failure();
  fired_faults fired;
  generation_id before;
  if (!settings.checkpoint_dir.empty()) {
    auto writable =
        prepare_checkpoint_directory(outside.env.files, settings.checkpoint_dir, outside.env.network.self());
    if (!writable) return writable;
    auto journal = read_journal(outside.env.files, settings.checkpoint_dir);
    if (journal && settings.resume.what != resume_choice::kind::nothing) {
      probe<"journal.succeeded">::hit();
      before = journal->generation;
      std::vector<std::string> plan;
      for (const auto& one : settings.faults)
        plan.push_back(to_text(one));
      if (auto known = fired_faults::decode(journal->fired); known && plan == journal->faults) fired = *known;
    }
  }
  compose(*shape, fired, before);
  return {};
}

void director_process::state::compose(const model_shape& shape, const fired_faults& fired,
                                      generation_id before) {
  auto& env = outside.env;
  started = env.clock.now();
  runtime = std::make_unique<actor_runtime>(env.loop, env.clock, env.log);
  office =
      std::make_unique<post_office>(*runtime, env.network, codecs, post_office_settings{.job = outside.job});
  const auto per_step = std::uint64_t{settings.global_batch} * settings.accumulate;
  report = std::make_shared<job_report>(job_report_settings{graph.identity().name, graph.identity().version,
                                                            settings.seed, settings.shards, settings.workers,
                                                            per_step, *settings.steps},
                                        env.clock, outside.events, outside.people, outside.style);
  parts.emplace(director_parts{.outside = env,
                               .office = *office,
                               .settings = {.members = {.slots = settings.workers - outside.external_slots,
                                                        .external_slots = outside.external_slots,
                                                        .workers_min = settings.workers_min,
                                                        .machine = outside.machine,
                                                        .join_deadline = limits.join_deadline,
                                                        .answer_deadline = limits.report_deadline,
                                                        .replacement_wait = limits.members_wait},
                                            .limits = limits,
                                            .intensity = graph.intensity(),
                                            .restart_backoff = {},
                                            .faults = settings.faults,
                                            .fired_before = fired,
                                            .generation_before = before},
                               .resume = {.directory = settings.checkpoint_dir,
                                          .layout = shape.layout,
                                          .choice = settings.resume,
                                          .seed = settings.seed,
                                          .shards = settings.shards,
                                          .global_batch = settings.global_batch,
                                          .wire = settings.wire,
                                          .top_k = format_number(settings.top_k),
                                          .steps = *settings.steps,
                                          .self = env.network.self()},
                               .job = outside.job,
                               .sums = shape.sums,
                               .flight_directory = settings.flight,
                               .door = outside.door,
                               .worker = outside.worker,
                               .lanes = outside.lanes,
                               .reporter = reporter,
                               .over = [this, here = alive](const std::optional<error>& cause) {
                                 if (*here) finish(cause ? exit_code_of(cause->code) : 0, cause);
                               }});
  office->set_control_handler(
      [this](incarnation_id from, std::uint64_t type, std::span<const std::byte> body) {
        if (type != control_type) return;
        if (auto message = wire::decode(body)) {
          caf::anon_send(director,
                         control_received{from, std::make_shared<const wire::control>(std::move(*message))});
        }
      });
  office->set_path_lost_handler([this](incarnation_id peer, const error& cause) {
    caf::anon_send(director, path_lost{peer, cause});
  });
  office->set_path_interrupted_handler([this](incarnation_id peer, const error& cause) {
    caf::anon_send(director, path_interrupted{peer, cause});
  });
}

// The root: reporter and the program's actors are restarted as often as they fail; a director that fails is a
// bug of ours, and ends the job.
void director_process::state::supervise() {
  std::vector<supervised_child> children{
      {{.id = "reporter"},
       [report = report](caf::actor_system& system) { return spawn_reporter(system, report); }},
      {{.id = "director", .restart = restart_type::temporary},
       [with = std::move(*parts), core = core](caf::actor_system& system) {
         return spawn_director(system, with, core);
       }}};
  for (const auto& user : graph.actors()) {
    if (user.where == placement::director) children.push_back({{.id = user.name}, user.make});
  }
  root = spawn_supervisor(runtime->system(), {.settings = {.intensity = graph.intensity()},
                                              .children = std::move(children),
                                              .listener = [this, here = alive](const child_change& what) {
                                                if (*here)
                                                  on_child_started(what); // the end may come before the start
                                              }});
  root->attach_functor([this, here = alive](const caf::error& reason) {
    if (*here) finish(70, to_troupe(reason));
  });
}

void director_process::state::on_child_started(const child_change& what) {
  if (what.id == "reporter") {
    *reporter = what.after;
  } else if (what.id == "director") {
    director = what.after;
    director->attach_functor([this, here = alive](const caf::error& reason) {
      if (*here) finish(70, to_troupe(reason));
    });
    caf::anon_send(director, start_job{});
  } else {
    (void)office->publish(what.id, what.after);
  }
}

expected<void> director_process::start() {
  auto& s = *state_;
  auto listening = s.outside.door.start([&s](const join_offer& offer) { return s.admit(offer); });
  if (!listening) return listening;
  s.report->begin(s.outside.door.endpoint());
  s.supervise();
  s.tick_again();
  return {};
}

void director_process::state::tick_again() {
  timer = outside.env.clock.call_after(limits.tick_interval, [this] {
    if (director) caf::anon_send(director, tick{});
    tick_again();
  });
}

// Answered inside the rendezvous's call: the director's decision is a pure look-up and a connection.
expected<join_answer> director_process::state::admit(const join_offer& offer) {
  if (*core == nullptr) return error{errc::refused, "the job is over"};
  if (offer.program != graph.identity().name) {
    return error{errc::refused, "this job runs '" + graph.identity().name + "', not '" + offer.program + "'"};
  }
  if (settings.collective == "shm" && offer.machine != outside.machine) {
    return error{errc::refused, "this job sums in the memory of its host (--collective shm), and '" +
                                    offer.host + "' is another one; accepted there: auto, ring"};
  }
  // Each end of a path chooses its lanes for itself, both from the same ones.
  if (offer.transport != settings.transport) {
    return error{errc::bad_argument, "--transport " + offer.transport +
                                         ": the job runs with another one; accepted: " + settings.transport};
  }
  if (const bool gpus = settings.gpu().has_value(); gpu_of(offer.device).has_value() != gpus) {
    return error{errc::bad_argument, "--device " + offer.device + ": the job sums on " +
                                         (gpus ? "GPUs; accepted: cuda:N" : "CPUs; accepted: auto, cpu")};
  }
  if (auto admitted = (*core)->on_offer(offer); !admitted) return admitted.failure();
  const job_handout handout{settings,
                            train.locator,
                            test.locator,
                            to_ns(started),
                            outside.machine,
                            train.data->digest(),
                            test.data ? test.data->digest() : std::string{}};
  return join_answer{outside.job, outside.env.network.self(), outside.env.network.local_address(),
                     encode(handout)};
}

void director_process::state::finish(int code, const std::optional<error>& cause) {
  if (over) return;
  over = true;
  outside.env.clock.cancel(std::exchange(timer, 0));
  outside.door.stop();
  outside.over(code, cause);
}

void director_process::keep_flights() {
  if (*state_->core != nullptr) (*state_->core)->keep_flights();
}

void director_process::stop(const error& cause) {
  if (state_->director) caf::anon_send(state_->director, stop_job{cause});
}

job_summary director_process::summary() const {
  return state_->report->summary();
}

const job_settings& director_process::settings() const {
  return state_->settings;
}

} // namespace troupe
