// Signal watcher: turns signals of this process into calls on the event loop. For a `main` only; a library
// that is embedded installs no handlers.
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/task.hpp"

namespace troupe {

class event_loop;

class signal_watcher {
public:
  // For example {SIGINT, SIGTERM}; `on_signal` gets the number, each time one arrives.
  signal_watcher(event_loop& loop, const std::vector<int>& signals, inline_function<void(int)> on_signal);
  ~signal_watcher(); // the signals have their default action again
  signal_watcher(const signal_watcher&) = delete;
  signal_watcher& operator=(const signal_watcher&) = delete;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
