// CAF's own network module (libcaf_io, BASP over tcp): the baseline `caf_io` of `bench message`.
//
// The same actors as Troupe's, published and found through the middleman; CAF serialises the messages. A
// payload of 1 MiB is a message, too. Scheduler: CAF's default, or `sharing`, which wakes up sooner.
#include <cstdio>

#include <caf/io/all.hpp>

#include "bench/message/driver.hpp"
#include "bench/support/peer_link.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

struct words {
  struct ready {
    caf::actor driver;
  };
  struct ping {
    std::uint64_t number{0};
  };
  struct begin {
    std::uint64_t pieces{0};
  };
  struct piece {
    std::array<std::uint64_t, 12> data{};
    std::uint32_t number{0};
  };
  struct ack {
    std::uint64_t received{0};
  };
  struct finished {
    double seconds{0}, allocations{0};
  };
  struct payload {
    std::string bytes;
  };
  struct payload_ack {
    std::uint64_t received{0};
  };
};

template <class Inspector>
auto inspect(Inspector& f, words::ready& x) {
  return f(x.driver);
}
template <class Inspector>
auto inspect(Inspector& f, words::ping& x) {
  return f(x.number);
}
template <class Inspector>
auto inspect(Inspector& f, words::begin& x) {
  return f(x.pieces);
}
template <class Inspector>
auto inspect(Inspector& f, words::piece& x) {
  return f(x.data, x.number);
}
template <class Inspector>
auto inspect(Inspector& f, words::ack& x) {
  return f(x.received);
}
template <class Inspector>
auto inspect(Inspector& f, words::finished& x) {
  return f(x.seconds, x.allocations);
}
template <class Inspector>
auto inspect(Inspector& f, words::payload& x) {
  return f(x.bytes);
}
template <class Inspector>
auto inspect(Inspector& f, words::payload_ack& x) {
  return f(x.received);
}

class config final : public caf::actor_system_config {
public:
  explicit config(const std::string& scheduler) {
    load<caf::io::middleman>();
    if (scheduler == "sharing") set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", 2U);
    set("logger.console-verbosity", caf::atom("quiet"));
    set("logger.file-verbosity", caf::atom("quiet"));
    add_message_type<words::ready>("bench_ready");
    add_message_type<words::ping>("bench_ping");
    add_message_type<words::begin>("bench_begin");
    add_message_type<words::piece>("bench_piece");
    add_message_type<words::ack>("bench_ack");
    add_message_type<words::finished>("bench_finished");
    add_message_type<words::payload>("bench_payload");
    add_message_type<words::payload_ack>("bench_payload_ack");
  }
};

int fail(const error& cause) {
  std::fprintf(stderr, "message_caf_io: %s\n", cause.text.c_str());
  return exit_code_of(cause.code);
}

// Waits for a driver to present itself, then answers it.
caf::behavior waiting_echo(caf::event_based_actor* self) {
  return {[self](const words::ready& what) {
    auto received = std::make_shared<std::uint64_t>(0);
    const caf::message_handler bulk{[self, received, driver = what.driver](const words::payload&) {
      self->send(driver, words::payload_ack{++*received});
    }};
    self->become(bulk.or_else(echo_handlers<words>(self, what.driver)));
    self->send(what.driver, what);
  }};
}

int run_peer(const program_options& options) {
  auto link = peer_link::inherited(options.peer);
  config settings{options.scheduler};
  caf::actor_system system{settings};
  const auto echo = system.spawn(waiting_echo);
  const auto port = system.middleman().publish(echo, 0, "127.0.0.1");
  if (!port) return fail({errc::internal, system.render(port.error())});
  if (auto said = link.say(std::to_string(*port)); !said) return fail(said.failure());
  (void)link.hear(); // until the other end is gone
  caf::anon_send_exit(echo, caf::exit_reason::kill);
  return 0;
}

struct outcome {
  program_result result;
  std::string failure;
};

// After the driver's phases: payloads as messages, `bulk_window` of them not acknowledged.
class bulk_phase {
public:
  bulk_phase(caf::event_based_actor* self, const program_options& options, std::shared_ptr<outcome> into)
      : self_{self}
      , options_{options}
      , into_{std::move(into)} {}
  void start(driver_outcome out) {
    into_->result = std::move(out.result);
    into_->failure = std::move(out.failure);
    echo_ = std::move(out.echo);
    if (!into_->failure.empty()) return self_->quit();
    began_ = bench_clock::now();
    for (unsigned i = 0; i < bulk_window; ++i)
      send();
  }
  void on_ack(std::uint64_t received) {
    if (received < options_.bulk) return send();
    into_->result.bulk_s = seconds_since(began_);
    self_->quit();
  }

private:
  void send() {
    if (sent_++ < options_.bulk) self_->send(caf::actor_cast<caf::actor>(echo_), message_);
  }
  caf::event_based_actor* self_;
  const program_options& options_;
  std::shared_ptr<outcome> into_;
  caf::actor echo_;
  caf::message message_ = caf::make_message(words::payload{std::string(bulk_bytes, 'x')});
  bench_clock::time_point began_;
  std::uint64_t sent_{0};
};

caf::behavior driver(caf::event_based_actor* self, const program_options& options, const caf::actor& echo,
                     const std::shared_ptr<outcome>& into) {
  const auto state = std::make_shared<driver_state<words>>();
  const auto bulk = std::make_shared<bulk_phase>(self, options, into);
  self->monitor(echo);
  self->set_down_handler([self, into](caf::down_msg& down) {
    into->failure = "the peer has ended: " + caf::to_string(down.reason);
    self->quit();
  });
  self->send(echo, words::ready{self});
  const caf::message_handler own{
      [self, state, bulk, echo, &options](const words::ready&) {
        state->start(self, options, echo, [bulk](driver_outcome out) { bulk->start(std::move(out)); });
      },
      [bulk](const words::payload_ack& what) { bulk->on_ack(what.received); },
  };
  return own.or_else(driver_handlers<words>(state));
}

int run_driver(const program_options& options) {
  auto link = peer_link::start(peer_arguments(options));
  if (!link) return fail(link.failure());
  const auto port = link->hear();
  if (!port) return fail(port.failure());
  config settings{options.scheduler};
  caf::actor_system system{settings};
  const auto echo =
      system.middleman().remote_actor("127.0.0.1", static_cast<std::uint16_t>(std::stoul(*port)));
  if (!echo) return fail({errc::internal, system.render(echo.error())});
  const auto into = std::make_shared<outcome>();
  system.spawn([&](caf::event_based_actor* self) { return driver(self, options, *echo, into); });
  system.await_all_actors_done();
  if (!into->failure.empty()) return fail({errc::actor_failed, into->failure});
  print_result(options, into->result);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_options(argc, argv, "Actor messages of CAF's network module between two processes");
  if (line.exit_code) return *line.exit_code;
  return line.options.peer >= 0 ? run_peer(line.options) : run_driver(line.options);
}
