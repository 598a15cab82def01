#include "cli/run/run_roles.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include <unistd.h>

#include "actors/graph/director_process.hpp"
#include "runtime/base/units.hpp"
#include "runtime/checkpoint/directory_guard.hpp"
#include "runtime/host/host_identity.hpp"
#include "runtime/host/instance_guard.hpp"
#include "runtime/host/secret_fd.hpp"
#include "runtime/host/signal_watcher.hpp"
#include "runtime/host/text_writer.hpp"
#include "runtime/telemetry/flight_dump.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/rendezvous/job_token.hpp"
#include "transports/ucx/lanes.hpp"

namespace troupe {
namespace {

class no_text final : public text_sink {
public:
  void write(std::string_view) override {}
};

// Everything of a director's program that outlives its event loop.
struct director_run {
  std::unique_ptr<host_environment> host;
  std::unique_ptr<instance_guard> guard;
  std::unique_ptr<text_writer> events, people;
  no_text nothing;
  unique_fd secret;
  tls_context::ptr tls;
  std::unique_ptr<asio_rendezvous_server> door;
  std::unique_ptr<director_process> job;
  std::vector<std::filesystem::path> created; // deepest first: what a failed job takes away again
  int exit_code{70};
  int signalled{0};
  std::optional<error> cause;
};

// Events are needed before the first thing happens, and a summary only at the end, which is too late to find
// out that it cannot be written.
expected<void> check_output(const std::string& option, const std::string& file) {
  if (file.empty()) return {};
  std::error_code ignored;
  const std::filesystem::path path{file};
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path{"."};
  const bool folder = std::filesystem::is_directory(path, ignored);
  const auto& written = std::filesystem::exists(path, ignored) ? path : parent / "";
  if (!folder && ::access(written.c_str(), W_OK) == 0) return {};
  return error{errc::bad_argument, option + " " + file + ": cannot be written: " +
                                       (folder ? "a directory" : std::string{::strerror(errno)}) +
                                       "; accepted: a file in a directory that can be written"};
}

std::vector<std::filesystem::path> missing_directories(const std::string& directory) {
  std::vector<std::filesystem::path> missing;
  std::error_code failed;
  std::filesystem::path path{directory};
  if (!path.has_filename()) path = path.parent_path();
  for (; !path.empty() && !std::filesystem::exists(path, failed) && !failed; path = path.parent_path())
    missing.push_back(path);
  return missing;
}

// A directory of dumps belongs to one run, as an event file does.
expected<void> open_flight(director_run& run, const job_settings& settings) {
  if (settings.flight.empty()) return {};
  const auto made = missing_directories(settings.flight);
  run.created.insert(run.created.end(), made.begin(), made.end());
  auto cleared = clear_flight_directory(run.host->env().files, settings.flight);
  if (!cleared) return error{errc::bad_argument, "--flight " + cleared.failure().text};
  return {};
}

expected<void> open_events(director_run& run, const job_settings& settings) {
  if (settings.events.empty()) return {};
  auto file = text_writer::to_file(settings.events);
  if (!file) return error{file.failure().code, "--events " + file.failure().text};
  run.events = std::move(*file);
  return {};
}

// Those that hold nothing; a job that failed leaves nothing behind but its checkpoints.
void take_away_created(director_run& run) {
  std::error_code not_empty;
  for (const auto& path : run.created)
    std::filesystem::remove(path, not_empty);
}

// A job of before may still be ending in this directory: its orphans hold the lock until they are gone.
expected<void> lock_directory(director_run& run, const job_settings& settings) {
  if (settings.checkpoint_dir.empty()) return {};
  auto& env = run.host->env();
  run.created = missing_directories(settings.checkpoint_dir);
  auto writable = prepare_checkpoint_directory(env.files, settings.checkpoint_dir, env.network.self());
  if (!writable) return error{writable.failure().code, "--checkpoint-dir " + writable.failure().text};
  auto guard = instance_guard::open(settings.checkpoint_dir);
  if (!guard) return error{guard.failure().code, "--checkpoint-dir " + guard.failure().text};
  run.guard = std::move(*guard);
  const auto orphans = timeouts::derive(settings.detect_after).orphan_grace * 2;
  const auto limit = std::max(orphans, 2 * launched_join_deadline) + std::chrono::seconds{2};
  std::optional<expected<void>> answer;
  run.guard->lock_within(env.clock, limit, [&answer](expected<void> locked) { answer = std::move(locked); });
  if (!answer)
    run.people->write("waiting up to " + format_duration(limit) + " for the processes of an earlier job in " +
                      settings.checkpoint_dir + "\n");
  while (!answer)
    (void)run.host->loop().run_until([&answer] { return answer.has_value(); }, std::chrono::minutes{1});
  if (!*answer) return error{answer->failure().code, "--checkpoint-dir " + answer->failure().text};
  return {};
}

expected<job_token> token_of(director_run& run, const job_settings& settings) {
  if (settings.token_file.empty()) return job_token::generate(run.host->random());
  return job_token::from_file(settings.token_file);
}

expected<void> open_door(director_run& run, const job_settings& settings) {
  auto token = token_of(run, settings);
  if (!token) return error{token.failure().code, "--token-file " + token.failure().text};
  auto secret = make_secret_fd(token->text());
  if (!secret) return secret.failure();
  run.secret = std::move(*secret);
  if (!settings.tls_cert.empty()) {
    auto tls = tls_context::of_director(
        {.certificate = settings.tls_cert, .key = settings.tls_key, .authority = settings.tls_ca});
    if (!tls) return tls.failure();
    run.tls = std::move(*tls);
  }
  run.door = std::make_unique<asio_rendezvous_server>(
      run.host->loop().io(), run.host->clock(), run.host->random(), std::move(*token),
      rendezvous_server_settings{.listen = settings.listen,
                                 .tls = run.tls,
                                 .exchange_deadline =
                                     timeouts::derive(settings.detect_after).exchange_deadline});
  return {};
}

process_spec worker_spec(const director_run& run, const job_settings& settings) {
  // UCX tests its memory hooks with a System V segment; killed in that moment, a worker would leave it. The
  // hooks serve registered memory, which tcp does not use.
  process_spec spec{.program = "/proc/self/exe", .environment = {std::string{role_variable} + "=worker"}};
  spec.environment.push_back("UCX_MEM_EVENTS=n");
  // A worker opens its transport before it learns the job's settings: its address is part of what it offers.
  spec.environment.push_back(std::string{transport_variable} + "=" + settings.transport);
  spec.environment.push_back(std::string{network_variable} + "=" + settings.network);
  spec.environment.push_back(std::string{device_variable} + "=" + settings.device);
  spec.environment.push_back(std::string{token_variable} + "=" + std::to_string(run.secret.get()));
  spec.inherited_fds.push_back(run.secret.get());
  if (run.tls) spec.environment.push_back(std::string{tls_director_variable} + "=" + run.tls->digest());
  if (!settings.tls_ca.empty()) {
    spec.environment.push_back(std::string{tls_certificate_variable} + "=" + settings.tls_cert);
    spec.environment.push_back(std::string{tls_key_variable} + "=" + settings.tls_key);
  }
  if (run.guard) spec.inherited_fds.push_back(run.guard->fd());
  return spec;
}

std::optional<gpu_use> gpu_of_director(const job_settings& settings) {
  if (!settings.gpu()) return std::nullopt;
  return gpu_use{.index = *settings.gpu(), .prepares_only = true, .end_process = {}};
}

// Each worker that is started here has a device of its own.
expected<void> check_gpus(const job_settings& settings) {
  const auto here = settings.workers - settings.external;
  if (!settings.gpu() || here == 0) return {};
  const auto first = *settings.gpu();
  auto found = host_gpu::look(first, first + here - 1);
  if (found) return {};
  return error{errc::bad_argument,
               "--device " + settings.device + ": " + found.failure().text + "; " + std::to_string(here) +
                   " workers are started here, on a device each; " + "accepted: auto, cpu"};
}

void warn_of_spinning(director_run& run, const training_graph& graph, const job_settings& settings) {
  const auto processes = settings.workers - settings.external + 1;
  const auto processors = std::thread::hardware_concurrency();
  if (settings.spin == duration{0} || processors > processes) return;
  run.people->write(graph.identity().name + ": --spin " + format_duration(settings.spin) + ": " +
                    std::to_string(processes) + " processes on " + std::to_string(processors) +
                    " processors: those that look for messages take time from those that compute\n");
}

expected<void> compose(director_run& run, const training_graph& graph, const job_settings& settings) {
  if (auto possible = check_output("--events", settings.events); !possible) return possible;
  if (auto possible = check_output("--summary", settings.summary); !possible) return possible;
  if (auto there = check_gpus(settings); !there) return there;
  auto host = open_host(settings.transport, settings.network, gpu_of_director(settings));
  if (!host) return host.failure();
  run.host = std::move(*host);
  run.host->collectives().choose(choice_of(settings.collective));
  run.people = text_writer::to_standard_error();
  if (settings.transport == "shm") run.people->write(graph.identity().name + ": " + shm_warning() + "\n");
  if (const auto events = events_warning(); !events.empty())
    run.people->write(graph.identity().name + ": " + events + "\n");
  if (settings.gpu() && run.host->collectives().kind() != "nccl")
    run.people->write(graph.identity().name + ": FAKE libraries of CUDA and NCCL: no GPU takes part\n");
  warn_of_spinning(run, graph, settings);
  run.host->loop().spin_for(settings.spin);
  if (auto opened = open_door(run, settings); !opened) return opened;
  if (auto locked = lock_directory(run, settings); !locked) return locked;
  if (auto opened = open_events(run, settings); !opened) return opened; // truncates: not another job's
  if (auto opened = open_flight(run, settings); !opened) return opened;
  const auto job = random_id_from<job_id>(run.host->random());
  run.host->network().set_job(job, run.door->secret_of(job));
  const auto style = settings.quiet                 ? progress_line::style::quiet
                     : standard_error_is_terminal() ? progress_line::style::terminal
                                                    : progress_line::style::plain;
  text_sink& events = run.events ? static_cast<text_sink&>(*run.events) : run.nothing;
  text_sink& people = *run.people;
  auto made = director_process::make(
      {.env = run.host->env(),
       .door = *run.door,
       .stage = run.host->stage(),
       .events = events,
       .people = people,
       .style = style,
       .worker = worker_spec(run, settings),
       .job = job,
       .machine = host_identity(),
       .external_slots = settings.external,
       .lanes = [&run](incarnation_id peer) { return short_lanes(run.host->network().lanes(peer)); },
       .over =
           [&run](int code, const std::optional<error>& cause) {
             run.exit_code = code;
             run.cause = cause;
             run.host->loop().stop();
           }},
      graph, settings);
  if (!made) return made.failure();
  run.job = std::move(*made);
  return run.job->start();
}

void tell_result(director_run& run, const training_graph& graph, const job_settings& settings) {
  const auto summary = run.job->summary();
  if (!settings.summary.empty()) {
    auto written = write_summary(run.host->env().files, settings.summary, summary);
    if (!written) run.people->write(graph.identity().name + ": --summary " + written.failure().text + "\n");
  }
  if (run.cause) {
    run.people->write(graph.identity().name + ": " + run.cause->text + "\n");
  } else if (summary.accuracy) {
    char line[96];
    std::snprintf(line, sizeof line, "test accuracy %.4f after %llu steps\n", *summary.accuracy,
                  static_cast<unsigned long long>(summary.steps_committed));
    run.people->write(line);
  }
  run.people->flush();
  if (run.events) run.events->flush();
}

} // namespace

command_line parse_command_line(const training_graph& graph, int argc, char** argv) {
  const auto& who = graph.identity();
  program_options options{{.name = who.name, .version = who.version, .summary = who.summary},
                          graph.default_settings()};
  for (const auto& one : graph.options()) {
    options.add({.name = one.name, .value_name = one.value_name, .help = one.help, .fallback = one.fallback});
  }
  return options.parse(argc, argv);
}

int say_error(const training_graph& graph, const error& cause) {
  std::fprintf(stderr, "%s: %s\n", graph.identity().name.c_str(), cause.text.c_str());
  return exit_code_of(cause.code);
}

int run_director(const training_graph& graph, const job_settings& settings) {
  director_run run;
  if (auto composed = compose(run, graph, settings); !composed) {
    if (run.people) run.people->flush();
    take_away_created(run);
    return say_error(graph, composed.failure());
  }
  const signal_watcher signals{
      run.host->loop(), {SIGINT, SIGTERM}, [&run](int number) {
        run.signalled = number;
        run.job->stop({errc::aborted, std::string{"ended by SIG"} + ::sigabbrev_np(number)});
      }};
  std::optional<signal_watcher> asked;
  if (!settings.flight.empty()) {
    const auto keep = [&run](int) { run.job->keep_flights(); };
    asked.emplace(run.host->loop(), std::vector<int>{SIGUSR1}, keep);
  }
  run.host->loop().run();
  run.host->finish_storage();
  tell_result(run, graph, settings);
  if (run.cause) take_away_created(run);
  return run.signalled != 0 ? 128 + run.signalled : run.exit_code;
}

} // namespace troupe
