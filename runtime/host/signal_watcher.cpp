#include "runtime/host/signal_watcher.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "runtime/host/event_loop.hpp"

namespace troupe {

struct signal_watcher::state : std::enable_shared_from_this<signal_watcher::state> {
  state(event_loop& loop, inline_function<void(int)> handler)
      : signals{loop.io()}
      , on_signal{std::move(handler)} {}

  void watch() {
    signals.async_wait([self = shared_from_this()](const boost::system::error_code& failed, int number) {
      if (failed || self->closed) return;
      self->watch();
      self->on_signal(number);
    });
  }

  boost::asio::signal_set signals;
  inline_function<void(int)> on_signal;
  bool closed{false};
};

signal_watcher::signal_watcher(event_loop& loop, const std::vector<int>& signals,
                               inline_function<void(int)> on_signal)
    : state_{std::make_shared<state>(loop, std::move(on_signal))} {
  for (const int number : signals)
    state_->signals.add(number);
  state_->watch();
}

signal_watcher::~signal_watcher() {
  state_->closed = true;
  state_->signals.clear();
  state_->signals.cancel();
}

} // namespace troupe
