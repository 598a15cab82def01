// Simulated process seam: children are simulated processes of the same world.
#pragma once

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/sim/sim_world.hpp"

namespace troupe {

class sim_process_host final : public process_host {
public:
  // Makes the program of a child from its spec (which program, which slot).
  using child_factory = std::function<std::unique_ptr<sim_program>(sim_process&)>;

  sim_process_host(sim_world& world, sim_process& owner, child_factory make)
      : world_{world}
      , owner_{owner}
      , make_{std::move(make)} {}

  expected<child_process> start(const process_spec& spec, process_exit_handler on_exit) override {
    if (!make_) return error{errc::bad_argument, "this process starts no children"};
    const auto delay = world_.draw_between(std::chrono::milliseconds{5}, std::chrono::milliseconds{60});
    auto& child = world_.start(spec, delay, make_, owner_.host());
    const auto handler = std::make_shared<process_exit_handler>(std::move(on_exit));
    children_[child.pid()] = handler;
    // Weakly: what the handler holds belongs to this process, and goes with it.
    world_.on_end(child.pid(),
                  [this, &parent = owner_, held = std::weak_ptr{handler}](const process_exit& how) {
                    if (parent.alive() && !held.expired()) parent.loop.post([this, how] { reaped(how); });
                  });
    return child_process{child.pid(), child.box};
  }

  expected<void> signal(std::int64_t pid, int signal_number) override {
    if (!children_.contains(pid))
      return error{errc::not_found, "process " + std::to_string(pid) + " is gone"};
    if (signal_number == SIGSTOP || signal_number == SIGCONT) {
      world_.pause(pid, signal_number == SIGSTOP);
    } else {
      world_.kill(pid, signal_number);
    }
    return {};
  }

private:
  void reaped(const process_exit& how) {
    const auto node = children_.extract(how.pid);
    if (!node.empty()) (*node.mapped())(how);
  }

  sim_world& world_;
  sim_process& owner_;
  child_factory make_;
  std::map<std::int64_t, std::shared_ptr<process_exit_handler>> children_;
};

} // namespace troupe
