#include "actors/system/loop_coordinator.hpp"

#include <exception>
#include <map>
#include <utility>

#include <caf/actor_addr.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/send.hpp>
#include <caf/system_messages.hpp>

#include "actors/system/errors.hpp"
#include "runtime/base/invariant.hpp"

namespace troupe {
namespace {

// Reaches the exception handler that an actor may have installed in its constructor.
struct handler_access : caf::scheduled_actor {
  static exception_handler& of(caf::scheduled_actor& actor) {
    return actor.*(&handler_access::exception_handler_);
  }
};

bool has_default_handler(caf::scheduled_actor& actor) {
  using plain = caf::error (*)(caf::scheduled_actor*, std::exception_ptr&);
  const auto* target = handler_access::of(actor).target<plain>();
  return target != nullptr && *target == &caf::scheduled_actor::default_exception_handler;
}

// Stands in for CAF's printer: what actors print (unexpected messages among it) goes to the log.
class log_printer final : public caf::event_based_actor {
public:
  log_printer(caf::actor_config& config, log_sink& log)
      : event_based_actor{config}
      , log_{log} {}
  caf::behavior make_behavior() override {
    return {
        [this](caf::add_atom, caf::actor_id who, std::string& text) {
          while (!text.empty() && text.back() == '\n')
            text.pop_back();
          if (!text.empty()) log_.write(log_level::warning, "actor", std::to_string(who) + ": " + text);
        },
        [](caf::flush_atom, caf::actor_id) {},
        [](caf::delete_atom, caf::actor_id) {},
        [](caf::redirect_atom, const std::string&, int) {},
        [](caf::redirect_atom, caf::actor_id, const std::string&, int) {},
    };
  }
  const char* name() const override { return "printer"; }

private:
  log_sink& log_;
};

} // namespace

class loop_coordinator::unit final : public caf::execution_unit {
public:
  explicit unit(loop_coordinator& owner)
      : execution_unit{&owner.system()}
      , owner_{owner} {}
  void exec_later(caf::resumable* job) override { owner_.enqueue(job); }

private:
  loop_coordinator& owner_;
};

struct loop_coordinator::gate {
  loop_coordinator* owner;
};

// The actors alive. Locked: the last handle of an idle actor may be dropped on any thread.
struct loop_coordinator::roster {
  mutable std::mutex mutex;
  std::map<caf::actor_id, caf::actor_addr> entries;

  [[nodiscard]] std::map<caf::actor_id, caf::actor_addr> copy() const {
    const std::lock_guard lock{mutex};
    return entries;
  }
};

loop_coordinator::loop_coordinator(caf::actor_system& system, executor& loop, clock_seam& clock,
                                   log_sink& log, loop_limits bounds)
    : abstract_coordinator{system}
    , loop_{loop}
    , log_{log}
    , bounds_{bounds}
    , clock_{clock}
    , unit_{std::make_unique<unit>(*this)}
    , gate_{std::make_shared<gate>(gate{this})}
    , alive_{std::make_shared<roster>()} {}

loop_coordinator::~loop_coordinator() {
  close();
}

void loop_coordinator::init(caf::actor_system_config&) {
  max_throughput_ = bounds_.messages_per_turn;
  num_workers_ = 1;
}

void loop_coordinator::start() {
  static constexpr auto options =
      static_cast<caf::spawn_options>(static_cast<int>(caf::hidden) | static_cast<int>(caf::lazy_init));
  utility_actors_[printer_id] = system_.spawn<log_printer, options>(log_);
}

// Called by ~actor_system, after its internal actors were told to end.
void loop_coordinator::stop() {
  if (utility_actors_[printer_id])
    caf::anon_send_exit(utility_actors_[printer_id], caf::exit_reason::user_shutdown);
  utility_actors_[printer_id] = nullptr;
  static constexpr std::size_t runs_max = 10000;
  if (!drain(runs_max)) log_.write(log_level::error, "actor", "actors still ready at the end: released");
  close();
}

void loop_coordinator::enqueue(caf::resumable* job) {
  {
    const std::lock_guard lock{mutex_};
    if (!closed_) {
      ready_.push_back(job);
      if (std::exchange(posted_, true)) return; // AS-2: a running turn looks again before it ends
      job = nullptr;
    }
  }
  if (job == nullptr)
    post_turn();
  else
    caf::intrusive_ptr_release(job); // AS-4
}

void loop_coordinator::post_turn() {
  loop_.post([link = gate_] {
    if (link->owner != nullptr) link->owner->turn();
  });
}

void loop_coordinator::turn() {
  invariant(!running_, "AS-1: a turn does not start inside another one");
  ++counters_.turns;
  running_ = true;
  for (std::size_t count = 0; count < bounds_.actors_per_turn && refill(); ++count)
    run_one(turn_[next_++]);
  running_ = false;
  if (keep_posted()) post_turn();
}

// Whether another turn is due; if not, the next `enqueue` posts one.
bool loop_coordinator::keep_posted() {
  const std::lock_guard lock{mutex_};
  posted_ = !closed_ && (next_ < turn_.size() || !ready_.empty());
  return posted_;
}

bool loop_coordinator::refill() {
  if (next_ < turn_.size()) return true;
  turn_.clear();
  next_ = 0;
  const std::lock_guard lock{mutex_};
  std::swap(turn_, ready_);
  return !turn_.empty();
}

void loop_coordinator::run_one(caf::resumable* job) {
  ++counters_.resumed;
  if (job->subtype() == caf::resumable::scheduled_actor) {
    auto& actor = *static_cast<caf::scheduled_actor*>(job);
    if (!actor.getf(caf::abstract_actor::is_initialized_flag)) adopt(actor);
  }
  switch (job->resume(unit_.get(), max_throughput_)) {
  case caf::resumable::resume_later: // keeps its reference
    enqueue(job);
    break;
  case caf::resumable::awaiting_message:
  case caf::resumable::done:
  case caf::resumable::shutdown_execution_unit:
    caf::intrusive_ptr_release(job);
    break;
  }
}

void loop_coordinator::adopt(caf::scheduled_actor& actor) {
  if (utility_actors_[printer_id] && actor.id() == utility_actors_[printer_id].id()) return;
  {
    const std::lock_guard lock{alive_->mutex};
    alive_->entries.emplace(actor.id(), actor.address());
  }
  actor.attach_functor([list = alive_, id = actor.id()](const caf::error&) {
    const std::lock_guard lock{list->mutex};
    list->entries.erase(id);
  });
  if (killing_) kill(actor);
  if (!has_default_handler(actor)) return;
  actor.set_exception_handler([this](caf::scheduled_actor* self, std::exception_ptr& thrown) { // AS-3
    ++counters_.exceptions;
    const auto cause = error_of(thrown, std::string{"actor "} + self->name());
    log_.write(log_level::error, "actor", cause.text);
    return to_caf(cause);
  });
}

bool loop_coordinator::drain(std::size_t runs_max) {
  bool turn_is_posted = false;
  {
    const std::lock_guard lock{mutex_};
    turn_is_posted = std::exchange(posted_, true); // nobody posts one meanwhile
  }
  running_ = true;
  std::size_t count = 0;
  for (; count < runs_max && refill(); ++count)
    run_one(turn_[next_++]);
  running_ = false;
  const bool empty = count < runs_max;
  if (turn_is_posted) return empty; // that turn will look
  if (keep_posted()) post_turn();
  return empty;
}

void loop_coordinator::kill_all() {
  killing_ = true;
  for (const auto& [id, address] : alive_->copy()) {
    if (const auto actor = caf::actor_cast<caf::strong_actor_ptr>(address)) kill(*actor->get());
  }
}

// Urgent: it overtakes the messages that wait, whose handlers do not run any more.
void loop_coordinator::kill(caf::abstract_actor& actor) {
  actor.enqueue(nullptr, caf::make_message_id(caf::message_priority::high),
                caf::make_message(caf::exit_msg{caf::actor_addr{}, caf::exit_reason::kill}), nullptr);
}

std::size_t loop_coordinator::alive() const {
  const std::lock_guard lock{alive_->mutex};
  return alive_->entries.size();
}

std::string loop_coordinator::names_alive(std::size_t count_max) const {
  std::string names;
  for (const auto& [id, address] : alive_->copy()) {
    if (count_max-- == 0) return names + ", ...";
    const auto strong = caf::actor_cast<caf::strong_actor_ptr>(address);
    const auto* actor = strong ? dynamic_cast<caf::monitorable_actor*>(strong->get()) : nullptr;
    names += (names.empty() ? "" : ", ") + std::string{actor != nullptr ? actor->name() : "?"} + "#" +
             std::to_string(id);
  }
  return names;
}

void loop_coordinator::close() {
  {
    const std::lock_guard lock{mutex_};
    if (closed_) return;
    closed_ = true;
  }
  gate_->owner = nullptr;
  clock_.disarm();
  clock_.cancel_all();
  release_ready();
}

void loop_coordinator::release_ready() {
  while (refill())
    cleanup_and_release(turn_[next_++]);
}

} // namespace troupe
