#include "actors/system/actor_runtime.hpp"

#include <utility>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/message.hpp>

#include "actors/system/loop_coordinator.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/invariant.hpp"

namespace troupe {

struct actor_runtime::state {
  executor& loop;
  clock_seam& clock;
  log_sink& log;
  actor_runtime_settings settings;
  caf::actor_system_config config;
  loop_coordinator* scheduler{nullptr}; // owned by the system
  std::unique_ptr<caf::actor_system> system;
  bool stopped{false};
  loop_counters last_counters; // once the system is gone
};

namespace {

std::string render(std::uint8_t code, caf::atom_value, const caf::message& context) {
  std::string text{to_string(static_cast<errc>(code - 1))};
  if (context.match_elements<std::string>()) text += ": " + context.get_as<std::string>(0);
  return text;
}

} // namespace

actor_runtime::actor_runtime(executor& loop, clock_seam& clock, log_sink& log,
                             actor_runtime_settings settings)
    : state_{new state{loop, clock, log, settings, {}, nullptr, nullptr, false, {}}} {
  auto& config = state_->config;
  config.set("logger.console-verbosity", caf::atom("quiet"));
  config.set("logger.file-verbosity", caf::atom("quiet"));
  config.add_error_category(caf::atom("troupe"), render);
  config.module_factories.emplace_back([self = state_.get()](caf::actor_system& system) {
    self->scheduler =
        new loop_coordinator(system, self->loop, self->clock, self->log,
                             {self->settings.messages_per_turn, self->settings.actors_per_turn});
    return self->scheduler;
  });
  state_->system = std::make_unique<caf::actor_system>(config);
  state_->system->await_actors_before_shutdown(false); // `stop` has ended them
}

actor_runtime::~actor_runtime() {
  stop();
  if (state_->system->detached_actors() == 0) return;
  // AS-6: waiting for a detached actor's thread could take for ever.
  state_->log.write(log_level::error, "actor", "detached actors still run: actor system left behind");
  [[maybe_unused]] auto* left_behind = state_.release();
}

caf::actor_system& actor_runtime::system() {
  return *state_->system;
}

executor& actor_runtime::loop() {
  return state_->loop;
}

clock_seam& actor_runtime::clock() {
  return state_->clock;
}

log_sink& actor_runtime::log() {
  return state_->log;
}

bool actor_runtime::stop() {
  auto& scheduler = *state_->scheduler;
  invariant(!scheduler.running(), "AS-5: stop is not called from inside an actor");
  if (std::exchange(state_->stopped, true)) return true;
  static constexpr int rounds_max = 16; // a dying actor may spawn another one
  bool drained = true;
  for (int round = 0; round < rounds_max && drained && (round == 0 || scheduler.alive() != 0); ++round) {
    scheduler.kill_all();
    drained = scheduler.drain(state_->settings.stop_runs_max);
  }
  const bool clean = drained && scheduler.alive() == 0;
  if (!clean) {
    static constexpr std::size_t names_max = 8;
    state_->log.write(log_level::error, "actor",
                      "actors that would not end: " + scheduler.names_alive(names_max));
  }
  scheduler.close();
  return clean;
}

actor_runtime_counters actor_runtime::counters() const {
  const auto& counters = state_->scheduler->counters();
  return {counters.turns, counters.resumed, counters.exceptions, state_->scheduler->alive()};
}

} // namespace troupe
