#include "actors/supervisor/supervisor_actor.hpp"

#include <exception>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/system_messages.hpp>

#include "actors/remote/wire_message.hpp"
#include "actors/system/errors.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

struct timer_due {
  static constexpr std::string_view wire_name = "troupe.supervisor_timer_due";
  std::uint64_t timer{0};
};

std::vector<child_spec> specs_of(const std::vector<supervised_child>& children) {
  std::vector<child_spec> specs;
  for (const auto& each : children)
    specs.push_back(each.spec);
  return specs;
}

class supervisor_actor final : public caf::event_based_actor {
public:
  supervisor_actor(caf::actor_config& config, supervisor_parts parts)
      : event_based_actor{config}
      , parts_{std::move(parts)}
      , machine_{parts_.settings, specs_of(parts_.children)}
      , lives_(parts_.children.size()) {}

  const char* name() const override { return "supervisor"; }

  caf::behavior make_behavior() override {
    set_down_handler([this](caf::down_msg& down) { on_down(down); });
    set_exit_handler([this](caf::exit_msg& exit) {
      if (!exit.reason) return; // a linked actor ended normally
      end_reason_ = exit.reason;
      carry_out(machine_.stop(time()));
    });
    carry_out(machine_.start(time()));
    return {
        [this](const timer_due& due) { carry_out(machine_.timer_fired(due.timer, time())); },
        [this](work_progressed) { machine_.progress(); },
    };
  }

  void on_exit() override { // SA-3
    for (auto& each : lives_) {
      if (each.handle) exit_child(each.handle, caf::exit_reason::kill);
      each.handle = nullptr;
    }
  }

private:
  struct child {
    caf::actor handle; // the last life's, alive or not
    child_life life{0};
  };

  [[nodiscard]] time_point time() const { return time_point{clock().now().time_since_epoch()}; }

  void carry_out(const supervision_actions& actions) {
    for (const auto& action : actions)
      std::visit([this](const auto& what) { act(what); }, action);
  }

  void act(const start_child& what) {
    auto& slot = lives_[what.child];
    const auto before = std::exchange(slot.handle, nullptr);
    slot.life = what.life;
    try {
      slot.handle = parts_.children[what.child].spawn(system());
    } catch (...) { // SA-2
      const auto cause =
          error_of(std::current_exception(), "starting " + parts_.children[what.child].spec.id);
      return carry_out(machine_.child_ended(what.child, what.life, cause, time()));
    }
    monitor(slot.handle);
    if (parts_.listener) // SA-1
      parts_.listener({parts_.children[what.child].spec.id, before, slot.handle, what.after});
    carry_out(machine_.child_started(what.child, what.life, time()));
  }
  void act(const stop_child& what) { exit_child(lives_[what.child].handle, caf::exit_reason::user_shutdown); }
  void act(const kill_child& what) { exit_child(lives_[what.child].handle, caf::exit_reason::kill); }
  void act(const set_timer& what) { delayed_send(this, what.delay, timer_due{what.timer}); }
  void act(const escalated& what) {
    probe<"supervisor.escalated">::hit();
    quit(to_caf(what.cause));
  }
  void act(const supervision_stopped&) { quit(end_reason_); }

  // A kill overtakes what waits in the child's mailbox; a request to stop does not. No sender: this may be
  // called while the last handle to the supervisor is being dropped.
  void exit_child(const caf::actor& target, caf::exit_reason reason) {
    if (!target) return;
    const auto priority =
        reason == caf::exit_reason::kill ? caf::message_priority::high : caf::message_priority::normal;
    target->enqueue(caf::make_mailbox_element(nullptr, caf::make_message_id(priority), {},
                                              caf::exit_msg{address(), reason}),
                    context());
  }

  void on_down(const caf::down_msg& down) {
    for (child_index index = 0; index < lives_.size(); ++index) {
      if (!lives_[index].handle || lives_[index].handle.address() != down.source) continue;
      std::optional<error> cause;
      if (!is_orderly_exit(down.reason)) cause = to_troupe(down.reason);
      return carry_out(machine_.child_ended(index, lives_[index].life, std::move(cause), time()));
    }
  }

  supervisor_parts parts_;
  supervision machine_;
  std::vector<child> lives_;
  caf::error end_reason_{caf::exit_reason::user_shutdown};
};

} // namespace

caf::actor spawn_supervisor(caf::actor_system& system, supervisor_parts parts) {
  return system.spawn<supervisor_actor>(std::move(parts));
}

} // namespace troupe
