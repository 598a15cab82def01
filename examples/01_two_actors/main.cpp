// Two actors in two processes: a request, a monitor, a kill, a restart.
//
// The same program plays both roles. Without a role it is the host: it starts an adder process, asks its
// actor for a sum, kills the process, sees its monitor fire, starts another one, and asks again.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

#include <unistd.h>

#include <caf/all.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "cli/run/host_environment.hpp"
#include "runtime/host/secret_fd.hpp"
#include "runtime/session/session_transport.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"

namespace {

using namespace troupe;
using namespace std::chrono_literals;

// Messages. A name and a list of fields: that is all it takes to cross a process.
struct introduction {
  static constexpr std::string_view wire_name = "two_actors.introduction";
  std::int64_t pid{0};
  void fields(auto& archive) { archive(pid); }
};
struct sum {
  static constexpr std::string_view wire_name = "two_actors.sum";
  std::int64_t a{0}, b{0};
  void fields(auto& archive) { archive(a, b); }
};
struct total {
  static constexpr std::string_view wire_name = "two_actors.total";
  std::int64_t value{0};
  void fields(auto& archive) { archive(value); }
};

codec_table make_codecs() {
  return codec_table{}.add<introduction, sum, total>();
}

// The actor of the adder process: introduces itself, then answers.
caf::behavior adder(caf::event_based_actor* self, caf::actor host) {
  self->send(host, introduction{::getpid()});
  return {[](const sum& what) { return total{what.a + what.b}; }};
}

// The actor of the host process: asks whoever introduces itself, and watches it.
using answered = std::function<void(std::int64_t pid)>;
caf::behavior host(caf::event_based_actor* self, answered next) {
  self->set_down_handler([](caf::down_msg& down) {
    std::printf("the monitor fired: %s\n", to_troupe(down.reason).text.c_str());
  });
  return {[self, next](const introduction& who) {
    const auto remote = caf::actor_cast<caf::actor>(self->current_sender());
    self->monitor(remote);
    self->request(remote, 2s, sum{20, 22})
        .then(
            [next, pid = who.pid](const total& answer) {
              std::printf("process %ld: 20 + 22 = %ld\n", static_cast<long>(pid),
                          static_cast<long>(answer.value));
              next(pid);
            },
            [](const caf::error& failure) {
              std::printf("no answer: %s\n", to_troupe(failure).text.c_str());
            });
  }};
}

int fail(const error& cause) {
  std::fprintf(stderr, "01_two_actors: %s\n", cause.text.c_str());
  return exit_code_of(cause.code);
}

// The adder process: join, connect, spawn; end when the host is gone.
int run_adder(host_environment& here, const char* endpoint, const char* token_fd) {
  auto token = job_token::from_file(std::string{"/proc/self/fd/"} + token_fd);
  if (!token) return fail(token.failure());
  const auto codecs = make_codecs();
  session_transport sessions{here.loop(), here.clock(), here.network()};
  actor_runtime runtime{here.loop(), here.clock(), here.env().log};
  std::unique_ptr<post_office> office;
  caf::actor actor;
  asio_rendezvous_client door{here.loop().io(), here.clock(), here.random(), *token};
  const join_offer offer{.incarnation = here.network().self(),
                         .pid = ::getpid(),
                         .program = "01_two_actors",
                         .address = here.network().local_address()};
  door.join(endpoint, offer, 5s, [&](expected<join_answer> joined) {
    if (!joined) return here.loop().stop();
    here.network().set_job(joined->job, joined->secret);
    office = std::make_unique<post_office>(runtime, sessions, codecs, post_office_settings{joined->job});
    office->set_path_lost_handler([&](incarnation_id, const error&) { here.loop().stop(); });
    if (!sessions.connect(joined->director, joined->address)) return here.loop().stop();
    actor = runtime.system().spawn(adder, office->remote(joined->director, "host"));
  });
  here.loop().run();
  return 0;
}

// The host process.
int run_host(host_environment& here) {
  const auto job = random_id_from<job_id>(here.random());
  const auto codecs = make_codecs();
  session_transport sessions{here.loop(), here.clock(), here.network()};
  actor_runtime runtime{here.loop(), here.clock(), here.env().log};
  post_office office{runtime, sessions, codecs, {.job = job}};

  const auto token = job_token::generate(here.random());
  const auto secret = make_secret_fd(token.text());
  if (!secret) return fail(secret.failure());
  asio_rendezvous_server door{here.loop().io(), here.clock(), here.random(), token, {}};
  here.network().set_job(job, door.secret_of(job));
  std::map<std::int64_t, incarnation_id> members; // by process id
  const auto admitted = door.start([&](const join_offer& offer) -> expected<join_answer> {
    members[offer.pid] = offer.incarnation;
    return join_answer{job, here.network().self(), here.network().local_address(), {}};
  });
  if (!admitted) return fail(admitted.failure());

  int started = 0;
  std::function<void()> start_adder = [&] {
    ++started;
    const process_spec spec{.program = "/proc/self/exe",
                            .environment = {"TWO_ACTORS_ENDPOINT=" + door.endpoint(),
                                            "TWO_ACTORS_TOKEN_FD=" + std::to_string(secret->get())},
                            .inherited_fds = {secret->get()}};
    const auto child = here.env().processes.start(spec, [&](const process_exit& exit) {
      std::printf("process %ld: %s\n", static_cast<long>(exit.pid), exit.text().c_str());
      office.peer_lost(members[exit.pid],
                       {errc::process_died, exit.text()}); // its handles die with the cause
      if (started < 2) start_adder();
    });
    if (!child) here.loop().stop();
  };
  const auto actor = runtime.system().spawn(host, [&](std::int64_t pid) {
    if (started < 2) return void(here.env().processes.signal(pid, SIGKILL));
    std::printf("done\n");
    here.loop().stop();
  });
  if (auto published = office.publish("host", actor); !published) return fail(published.failure());
  start_adder();
  here.loop().run();
  return 0;
}

} // namespace

int main() {
  auto here = host_environment::open(log_level::warning);
  if (!here) return fail(here.failure());
  const char* endpoint = std::getenv("TWO_ACTORS_ENDPOINT");
  return endpoint != nullptr ? run_adder(**here, endpoint, std::getenv("TWO_ACTORS_TOKEN_FD"))
                             : run_host(**here);
}
