#include "cli/run/run_roles.hpp"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "actors/director/director_actor.hpp"
#include "actors/graph/handout.hpp"
#include "actors/graph/worker_process.hpp"
#include "runtime/host/host_identity.hpp"
#include "runtime/host/secret_fd.hpp"
#include "runtime/host/signal_watcher.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/rendezvous/job_token.hpp"
#include "transports/ucx/lanes.hpp"

namespace troupe {
namespace {

constexpr int exit_not_started = 70;

struct worker_run {
  std::unique_ptr<host_environment> host;
  std::unique_ptr<asio_rendezvous_client> door;
  std::unique_ptr<worker_process> work;
  std::int64_t slot{-1};
  std::string transport{"tcp"}; // as --transport takes it
  bool launched{false};         // by a director: it reports for us
  std::string device{"cpu"};    // as --device takes it
  int exit_code{exit_not_started};
};

std::optional<long> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  long value = 0;
  const auto* end = text + std::strlen(text);
  const auto parsed = std::from_chars(text, end, value);
  return parsed.ptr == end && parsed.ec == std::errc{} ? std::optional{value} : std::nullopt;
}

std::uint32_t slot_of(std::int64_t number) { // -1: from outside
  return number < 0 ? 0 : static_cast<std::uint32_t>(number);
}

// Why this process is about to end, where its parent can read it after any death.
void note_cause(worker_run& run, const std::string& cause) {
  auto& place = run.host->env().box.cause;
  const auto length = std::min(cause.size(), place.size() - 1);
  std::memcpy(place.data(), cause.data(), length);
  place[length] = '\0';
}

void end(worker_run& run, const training_graph& graph, int code, const std::string& cause) {
  run.exit_code = code;
  if (code != 0) {
    note_cause(run, cause);
    if (!run.launched) std::fprintf(stderr, "%s: %s\n", graph.identity().name.c_str(), cause.c_str());
  }
  run.host->loop().stop();
}

// The device of a worker that was told `device`: its own where several were started together.
std::optional<gpu_use> gpu_of_worker(worker_run& run, std::string_view device, std::uint32_t slot) {
  const auto first = gpu_of(device);
  if (!first) return std::nullopt;
  run.device = device;
  return gpu_use{
      .index = *first + slot, .prepares_only = false, .end_process = [&run](const std::string& why) {
        note_cause(run, why);
        run.host->env().self.exit_now(exit_code_of(errc::device_failed));
      }};
}

expected<void> take_settings(const worker_run& run, const join_answer& joined) {
  const auto given = decode_handout(joined.settings);
  if (!given) return given.failure();
  run.host->set_deadlines(timeouts::derive(given->settings.detect_after));
  run.host->loop().spin_for(given->settings.spin);
  return {};
}

void begin(worker_run& run, const training_graph& graph, const join_answer& joined) {
  if (auto taken = take_settings(run, joined); !taken)
    return end(run, graph, exit_code_of(taken.failure().code), taken.failure().text);
  run.host->network().set_job(joined.job, joined.secret);
  auto made = worker_process::make(
      {.env = run.host->env(),
       .stage = run.host->stage(),
       .pid = ::getpid(),
       .slot = slot_of(run.slot),
       .machine = host_identity(),
       .joined_from_outside = run.slot < 0,
       .over = [&run, &graph](int code, const std::string& cause) { end(run, graph, code, cause); }},
      graph, joined);
  if (!made) return end(run, graph, exit_code_of(made.failure().code), made.failure().text);
  run.work = std::move(*made);
  run.work->start();
}

int join(worker_run& run, const training_graph& graph, const std::string& endpoint, job_token token,
         tls_context::ptr tls, duration deadline) {
  auto& env = run.host->env();
  run.door = std::make_unique<asio_rendezvous_client>(
      run.host->loop().io(), env.clock, env.random, std::move(token),
      rendezvous_client_settings{.tls = std::move(tls), .refusal_is_final = run.launched});
  char host[256]{};
  ::gethostname(host, sizeof host - 1);
  const join_offer offer{.incarnation = env.network.self(),
                         .pid = ::getpid(),
                         .host = host,
                         .machine = host_identity(),
                         .program = graph.identity().name,
                         .transport = run.transport,
                         .device = run.device,
                         .slot = run.slot,
                         .address = env.network.local_address()};
  run.door->join(endpoint, offer, deadline, [&run, &graph, where = endpoint](expected<join_answer> joined) {
    if (!joined)
      return end(run, graph, exit_code_of(joined.failure().code),
                 "--join " + where + ": " + joined.failure().text);
    begin(run, graph, *joined);
  });
  run.host->loop().run();
  run.host->finish_reading();
  run.host->finish_storage();
  run.work.reset();
  run.host->rest_gpu();
  return run.exit_code;
}

std::string text_in_environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// None where joining is in the clear.
expected<tls_context::ptr> tls_of(const tls_settings& settings) {
  if (settings.authority.empty() && settings.director.empty()) return tls_context::ptr{};
  return tls_context::of_joiner(settings);
}

} // namespace

int run_worker(const training_graph& graph) {
  worker_run run{.launched = true};
  const char* transport = std::getenv(transport_variable);
  if (transport != nullptr) run.transport = transport;
  const auto network = text_in_environment(network_variable);
  const auto slot = number_in_environment(slot_variable);
  const auto gpu = gpu_of_worker(run, text_in_environment(device_variable), slot_of(slot.value_or(0)));
  auto host = open_host(run.transport, network.empty() ? "lo" : network, gpu);
  if (!host) return say_error(graph, host.failure());
  run.host = std::move(*host);
  // A terminal's Ctrl-C goes to all its processes; how the job ends is the director's decision.
  const signal_watcher ignored{run.host->loop(), {SIGINT}, [](int) {}};
  const char* endpoint = std::getenv(endpoint_variable);
  const auto token_fd = number_in_environment(token_variable);
  if (endpoint == nullptr || !slot || !token_fd) {
    return say_error(graph, {errc::bad_argument, "TROUPE_ROLE=worker is set by a director only; unset it"});
  }
  run.slot = *slot;
  // By its path: siblings inherit the same descriptor, and would share its position.
  auto token = job_token::from_file("/proc/self/fd/" + std::to_string(*token_fd));
  if (!token) return say_error(graph, token.failure());
  ::close(static_cast<int>(*token_fd));
  auto tls = tls_of({.certificate = text_in_environment(tls_certificate_variable),
                     .key = text_in_environment(tls_key_variable),
                     .director = text_in_environment(tls_director_variable)});
  if (!tls) return say_error(graph, tls.failure());
  return join(run, graph, endpoint, std::move(*token), std::move(*tls), launched_join_deadline);
}

int run_joiner(const training_graph& graph, const job_settings& settings) {
  worker_run run{.transport = settings.transport};
  auto host = open_host(run.transport, settings.network, gpu_of_worker(run, settings.device, 0));
  if (!host) return say_error(graph, host.failure());
  run.host = std::move(*host);
  if (settings.token_file.empty()) {
    return say_error(
        graph, {errc::bad_argument, "--join " + settings.join + ": needs --token-file with the job's token"});
  }
  auto token = job_token::from_file(settings.token_file);
  if (!token) return say_error(graph, {token.failure().code, "--token-file " + token.failure().text});
  auto tls =
      tls_of({.certificate = settings.tls_cert, .key = settings.tls_key, .authority = settings.tls_ca});
  if (!tls) return say_error(graph, tls.failure());
  return join(run, graph, settings.join, std::move(*token), std::move(*tls),
              timeouts::derive(settings.detect_after).join_deadline);
}

} // namespace troupe
