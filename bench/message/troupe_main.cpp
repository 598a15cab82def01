// Troupe: actor to actor through the public path, as examples/01_two_actors composes it.
//
// Flow:     driver -> proxy -> post office -> transport -> UCX -> ... -> echo; bulk by the post office.
// The process that was started admits the other one through the rendezvous, as any program does.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <boost/asio/io_context.hpp>
#include <unistd.h>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "bench/message/driver.hpp"
#include "bench/message/urgent_trips.hpp"
#include "cli/run/host_environment.hpp"
#include "runtime/host/secret_fd.hpp"
#include "runtime/policy/timeouts.hpp"
#include "runtime/session/session_transport.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/ucx/lanes.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;
using namespace std::chrono_literals;

struct words {
  struct ready {
    static constexpr std::string_view wire_name = "bench.ready";
    std::int64_t pid{0};
    void fields(auto& archive) { archive(pid); }
  };
  struct ping {
    static constexpr std::string_view wire_name = "bench.ping";
    std::uint64_t number{0};
    void fields(auto& archive) { archive(number); }
  };
  struct begin {
    static constexpr std::string_view wire_name = "bench.begin";
    std::uint64_t pieces{0};
    void fields(auto& archive) { archive(pieces); }
  };
  struct piece {
    static constexpr std::string_view wire_name = "bench.piece";
    std::array<std::uint64_t, 12> data{};
    std::uint32_t number{0};
    void fields(auto& archive) { archive(data, number); }
  };
  struct ack {
    static constexpr std::string_view wire_name = "bench.ack";
    std::uint64_t received{0};
    void fields(auto& archive) { archive(received); }
  };
  struct finished {
    static constexpr std::string_view wire_name = "bench.finished";
    double seconds{0}, allocations{0};
    void fields(auto& archive) { archive(seconds, allocations); }
  };
};

// One process's end: what lies between its actors and the network.
struct message_end {
  message_end(host_environment& here, job_id job)
      : sessions{here.loop(), here.clock(), here.network()}
      , runtime{here.loop(), here.clock(), here.env().log}
      , office{runtime, sessions, codecs, {.job = job}} {}

  codec_table codecs =
      codec_table{}.add<words::ready, words::ping, words::begin, words::piece, words::ack, words::finished>();
  session_transport sessions;
  actor_runtime runtime;
  post_office office;
};

int fail(const error& cause) {
  std::fprintf(stderr, "message_troupe: %s\n", cause.text.c_str());
  return exit_code_of(cause.code);
}

expected<std::unique_ptr<host_environment>> open_host(const program_options& options) {
  return host_environment::open(log_level::warning, settings_for(options.lane));
}

void run_loop(host_environment& here, const program_options& options) {
  if (options.wake == "poll") here.loop().spin_for(spin_max);
  here.loop().run();
}

// -- The end that answers --

class bulk_rooms final : public bulk_listener {
public:
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& what) override {
    if (what.bytes == large_bulk_bytes) {
      large_.resize(large_bulk_bytes);
      return large_;
    }
    if (what.bytes != bulk_bytes) return {};
    return rooms_[what.transfer % bulk_window];
  }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}

private:
  std::vector<std::vector<std::byte>> rooms_{bulk_window, std::vector<std::byte>(bulk_bytes)};
  std::vector<std::byte> large_; // one at a time
};

int run_peer(host_environment& here, const program_options& options, const char* endpoint) {
  auto token = job_token::from_file(std::string{"/proc/self/fd/"} + std::getenv("TROUPE_BENCH_TOKEN_FD"));
  if (!token) return fail(token.failure());
  bulk_rooms rooms;
  std::unique_ptr<message_end> end;
  caf::actor echo; // nobody else holds it before the driver knows it
  std::optional<error> failure;
  asio_rendezvous_client door{here.loop().io(), here.clock(), here.random(), *token};
  const join_offer offer{.incarnation = here.network().self(),
                         .pid = ::getpid(),
                         .program = "message_troupe",
                         .address = here.network().local_address()};
  const auto give_up = [&](error cause) {
    failure = std::move(cause);
    here.loop().stop();
  };
  door.join(endpoint, offer, 5s, [&](expected<join_answer> joined) {
    if (!joined) return give_up(joined.failure());
    here.network().set_job(joined->job, joined->secret);
    end = std::make_unique<message_end>(here, joined->job);
    end->office.set_path_lost_handler([&](incarnation_id, const error&) { here.loop().stop(); });
    end->office.set_bulk_handler(&rooms);
    answer_urgent(end->office);
    if (auto connected = end->sessions.connect(joined->director, joined->address); !connected)
      return give_up(connected.failure());
    const auto driver = end->office.remote(joined->director, "driver");
    echo = end->runtime.system().spawn([driver](caf::event_based_actor* self) -> caf::behavior {
      self->send(driver, words::ready{::getpid()});
      return echo_handlers<words>(self, driver);
    });
  });
  run_loop(here, options);
  return failure ? fail(*failure) : 0;
}

// -- The end that measures --

class measurement {
public:
  measurement(host_environment& here, const program_options& options)
      : here_{here}
      , options_{options}
      , job_{random_id_from<job_id>(here.random())} {
    end_ = std::make_unique<message_end>(here, job_);
  }

  int run() {
    const auto driver =
        end_->runtime.system().spawn([this](caf::event_based_actor* self) { return driver_behavior(self); });
    if (auto published = end_->office.publish("driver", driver); !published) return fail(published.failure());
    if (auto started = start_peer(); !started) return fail(started.failure());
    run_loop(here_, options_);
    if (failure_) return fail(*failure_);
    print_result(options_, outcome_.result);
    return 0;
  }

private:
  expected<void> start_peer() {
    const auto token = job_token::generate(here_.random());
    secret_ = make_secret_fd(token.text());
    if (!secret_) return secret_.failure();
    door_ = std::make_unique<asio_rendezvous_server>(here_.loop().io(), here_.clock(), here_.random(), token,
                                                     rendezvous_server_settings{});
    here_.network().set_job(job_, door_->secret_of(job_));
    const auto admitted = door_->start([this](const join_offer& offer) -> expected<join_answer> {
      peer_ = offer.incarnation;
      return join_answer{job_, here_.network().self(), here_.network().local_address(), {}};
    });
    if (!admitted) return admitted.failure();
    const process_spec spec{.program = "/proc/self/exe",
                            .arguments = peer_arguments(options_),
                            .environment = {"TROUPE_BENCH_ENDPOINT=" + door_->endpoint(),
                                            "TROUPE_BENCH_TOKEN_FD=" + std::to_string(secret_->get())},
                            .inherited_fds = {secret_->get()}};
    const auto child = here_.env().processes.start(spec, [this](const process_exit& exit) {
      give_up({errc::process_died, "the peer: " + exit.text()});
    });
    if (!child) return child.failure();
    return {};
  }

  caf::behavior driver_behavior(caf::event_based_actor* self) {
    const auto state = std::make_shared<driver_state<words>>();
    self->set_down_handler([state](caf::down_msg& down) { state->fail(to_troupe(down.reason).text); });
    const caf::message_handler own{
        [this, self, state](const words::ready&) {
          const auto echo = caf::actor_cast<caf::actor>(self->current_sender());
          self->monitor(echo);
          state->start(
              self, options_, echo, [this](driver_outcome out) { on_measured(std::move(out)); }, credit());
        },
        [state](const edge_ready&) { state->on_ready(); },
        [state](const undelivered& what) {
          if (what.cause.code == errc::no_credit)
            state->on_returned();
          else
            state->fail(what.cause.text);
        },
    };
    return own.or_else(driver_handlers<words>(state));
  }

  driver_credit credit() {
    return {.now = [this](const caf::actor& to) { return end_->office.credit(to); },
            .when_ready = [this](const caf::actor& to,
                                 const caf::actor& who) { end_->office.when_ready(to, who); }};
  }

  void on_measured(driver_outcome out) {
    outcome_ = std::move(out);
    if (!outcome_.failure.empty()) return give_up({errc::actor_failed, outcome_.failure});
    if (outcome_.came_back != 0)
      outcome_.result.notes.push_back(
          std::to_string(outcome_.came_back) +
          " messages of the stream came back for want of credit, and were sent again");
    bulk_began_ = bench_clock::now();
    for (unsigned i = 0; i < bulk_window; ++i)
      send_bulk();
  }

  void send_bulk() {
    if (bulk_sent_ == options_.bulk) return;
    const auto transfer = bulk_sent_++;
    end_->office.send_bulk(peer_, transfer, payload_, [this](const expected<void>& result) {
      if (!result) return give_up(result.failure());
      if (++bulk_arrived_ < options_.bulk) return send_bulk();
      outcome_.result.bulk_s = seconds_since(bulk_began_);
      measure_urgent();
    });
  }

  void measure_urgent() {
    urgent_.emplace(end_->office, here_.clock(), peer_, options_.urgent,
                    [this](expected<urgent_times> measured) {
                      if (!measured) return give_up(measured.failure());
                      outcome_.result.urgent = std::move(*measured);
                      here_.loop().stop();
                    });
    urgent_->start();
  }

  void give_up(error cause) {
    if (!failure_) failure_ = std::move(cause);
    here_.loop().stop();
  }

  host_environment& here_;
  const program_options& options_;
  job_id job_;
  std::unique_ptr<message_end> end_;
  expected<unique_fd> secret_{unique_fd{}};
  std::unique_ptr<asio_rendezvous_server> door_;
  incarnation_id peer_;
  driver_outcome outcome_;
  std::optional<error> failure_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(bulk_bytes, std::byte{1});
  bench_clock::time_point bulk_began_;
  std::uint64_t bulk_sent_{0}, bulk_arrived_{0};
  std::optional<urgent_trips> urgent_; // goes before what it measures
};

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_options(argc, argv, "Actor messages of Troupe between two processes");
  if (line.exit_code) return *line.exit_code;
  auto here = open_host(line.options);
  if (!here) return fail(here.failure());
  if (const char* endpoint = std::getenv("TROUPE_BENCH_ENDPOINT"); endpoint != nullptr)
    return run_peer(**here, line.options, endpoint);
  return measurement{**here, line.options}.run();
}
