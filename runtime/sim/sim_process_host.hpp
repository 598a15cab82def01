// Simulated process seam: children are simulated processes of the same world.
#pragma once

#include <csignal>
#include <functional>
#include <memory>

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
    const auto delay = world_.draw_between(std::chrono::milliseconds{5}, std::chrono::milliseconds{60});
    auto& child = world_.start(spec, delay, make_);
    auto handler = std::make_shared<process_exit_handler>(std::move(on_exit));
    world_.on_end(child.pid(), [&world = world_, parent = owner_.pid(), handler](const process_exit& how) {
      auto* alive = world.find(parent);
      if (alive != nullptr) alive->loop.post([handler, how] { (*handler)(how); });
    });
    return child_process{child.pid(), child.box};
  }

  expected<void> signal(std::int64_t pid, int signal_number) override {
    if (world_.find(pid) == nullptr)
      return error{errc::not_found, "process " + std::to_string(pid) + " is gone"};
    if (signal_number == SIGSTOP || signal_number == SIGCONT) {
      world_.pause(pid, signal_number == SIGSTOP);
    } else {
      world_.kill(pid, signal_number);
    }
    return {};
  }

private:
  sim_world& world_;
  sim_process& owner_;
  child_factory make_;
};

} // namespace troupe
