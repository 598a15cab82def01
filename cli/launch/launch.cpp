#include "cli/launch/launch.hpp"

#include <csignal>
#include <cstdlib>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <nlohmann/json.hpp>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_process.hpp"
#include "runtime/host/orphan_reaper.hpp"
#include "runtime/host/signal_watcher.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr duration orphan_look = std::chrono::milliseconds{10};
constexpr duration orphan_grace = std::chrono::seconds{1};

// A port of the loopback interface that nobody uses now. It is free again when this returns: the first copy
// takes it, as such programs expect.
expected<std::uint16_t> free_port(boost::asio::io_context& io) {
  using boost::asio::ip::tcp;
  boost::system::error_code failed;
  tcp::acceptor probe{io};
  probe.open(tcp::v4(), failed);
  if (!failed) probe.bind({boost::asio::ip::address_v4::loopback(), 0}, failed);
  if (failed) return error{errc::refused, "MASTER_PORT: no free port on 127.0.0.1: " + failed.message()};
  return probe.local_endpoint().port();
}

// Everything of one launch that lives as long as its event loop.
class launching {
public:
  launching(launch_result& into, duration grace)
      : result_{into}
      , grace_{grace} {}

  expected<void> start_all(const std::vector<process_spec>& specs) {
    for (std::uint32_t rank = 0; rank < specs.size(); ++rank) {
      auto child = processes_.start(
          specs[rank], [this, rank](const process_exit& end) { act(result_.core.on_exit(rank, end)); });
      if (!child) return child.failure(); // the destructor kills and reaps those before (HP-3)
      result_.pids.push_back(child->pid);
    }
    return {};
  }

  void wait() {
    loop_.run();
    clock_.cancel(grace_timer_);
    // What the copies left: told to end, then killed.
    const auto kill_at = clock_.now() + orphan_grace;
    int number = SIGTERM;
    while (orphans_.sweep(number) != 0) {
      (void)loop_.run_until([] { return false; }, orphan_look);
      number = clock_.now() < kill_at ? 0 : SIGKILL;
    }
  }

  [[nodiscard]] event_loop& loop() { return loop_; }
  [[nodiscard]] const host_clock& clock() const { return clock_; }

private:
  void act(const launch_core::actions& what) {
    if (what.signal_all != 0) {
      for (const auto pid : result_.pids)
        (void)processes_.signal(pid, what.signal_all); // one that has ended is not there any more
    }
    if (what.arm_grace)
      grace_timer_ = clock_.call_after(grace_, [this] { act(result_.core.on_grace_over()); });
    if (what.over) loop_.stop();
  }

  launch_result& result_;
  duration grace_;
  timer_id grace_timer_{0};
  orphan_reaper orphans_;
  event_loop loop_;
  host_clock clock_{loop_};
  host_process processes_{loop_};
  signal_watcher signals_{loop_,
                          {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH},
                          [this](int number) { act(result_.core.on_signal(number)); }};
};

expected<std::vector<process_spec>> specs_of(const launch_request& request, const launch_result& found,
                                             boost::asio::io_context& io) {
  if (found.kind == program_kind::troupe)
    return std::vector<process_spec>{{.program = found.path, .arguments = troupe_arguments(request)}};
  const auto port = free_port(io);
  if (!port) return port.failure();
  std::vector<process_spec> specs;
  const auto copies = request.copies.value_or(1);
  for (std::uint32_t rank = 0; rank < copies; ++rank)
    specs.push_back({.program = found.path,
                     .arguments = request.arguments,
                     .environment = copy_variables(rank, copies, *port)});
  return specs;
}

} // namespace

std::vector<std::string> copy_variables(std::uint32_t rank, std::uint32_t copies, std::uint16_t port) {
  const auto own = std::to_string(rank);
  const auto all = std::to_string(copies);
  return {"RANK=" + own,           "LOCAL_RANK=" + own,
          "WORLD_SIZE=" + all,     "LOCAL_WORLD_SIZE=" + all,
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port)};
}

std::vector<std::string> troupe_arguments(const launch_request& request) {
  std::vector<std::string> arguments;
  if (request.copies) arguments = {"--workers", std::to_string(*request.copies)};
  arguments.insert(arguments.end(), request.arguments.begin(), request.arguments.end());
  return arguments;
}

expected<launch_result> launch(const launch_request& request) {
  const char* search_path = std::getenv("PATH");
  auto path = find_program(request.program, search_path == nullptr ? "" : search_path);
  if (!path) return path.failure();
  launch_result result{.path = *path, .kind = request.as ? *request.as : kind_of_program(*path)};
  const auto usual = result.kind == program_kind::troupe ? troupe_grace : foreign_grace;
  launching now{result, request.grace.value_or(usual)};
  const auto specs = specs_of(request, result, now.loop().io());
  if (!specs) return specs.failure();
  result.core = launch_core{static_cast<std::uint32_t>(specs->size())};
  const auto began = now.clock().now();
  if (auto started = now.start_all(*specs); !started) return started.failure();
  now.wait();
  result.wall = now.clock().now() - began;
  return result;
}

std::string to_json(const launch_request& request, const launch_result& result) {
  json processes = json::array();
  for (std::size_t rank = 0; rank < result.pids.size(); ++rank) {
    const auto& end = result.core.ends()[rank];
    processes.push_back({{"rank", rank},
                         {"pid", result.pids[rank]},
                         {"exit_code", end ? json(exit_code_of(*end)) : json()},
                         {"end", end ? json(end->text()) : json()}});
  }
  json first;
  if (const auto& failed = result.core.first_failure())
    first = {{"rank", failed->rank}, {"cause", failed->end.text()}};
  return json{{"program", request.program},
              {"path", result.path},
              {"kind", result.kind == program_kind::troupe ? "troupe" : "foreign"},
              {"copies", result.pids.size()},
              {"exit_code", result.core.exit_code()},
              {"first_failure", first},
              {"processes", processes},
              {"wall_s", to_s(result.wall)}}
      .dump(2, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe
