#include "bench/support/job_runner.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_process.hpp"
#include "runtime/host/orphan_reaper.hpp"
#include "runtime/host/signal_watcher.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

constexpr duration orphan_look = std::chrono::milliseconds{5};
constexpr duration term_grace = std::chrono::seconds{10};

std::string read_file(const fs::path& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

fs::path beside_this_program(const std::string& name) {
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed).parent_path() / name;
}

struct job_runner::state {
  explicit state(fs::path made)
      : folder{std::move(made)} {}
  ~state() {
    for (const auto& [pid, end] : ends)
      if (!end) (void)processes.signal(pid, SIGTERM);
    (void)loop.run_until([this] { return processes.running() == 0; }, term_grace);
    for (const auto& [pid, end] : ends)
      if (!end) (void)processes.signal(pid, SIGKILL);
    (void)loop.run_until([this] { return processes.running() == 0; }, term_grace);
    if (processes.running() == 0) sweep(); // JB-1
    std::error_code failed;
    fs::remove_all(folder, failed);
  }

  // Through a shell, which only redirects and becomes the program: same process, same descriptors.
  expected<std::int64_t> start(const std::string& program, const std::vector<std::string>& arguments,
                               const fs::path& output, std::vector<int> kept) {
    process_spec spec{.program = "/bin/sh",
                      .arguments = {"-c", "log=$1 out=$2; shift 2; exec \"$@\" 2>>\"$log\" >\"$out\"", "sh",
                                    log().string(), output.string(), program},
                      .inherited_fds = std::move(kept)};
    spec.arguments.insert(spec.arguments.end(), arguments.begin(), arguments.end());
    auto child = processes.start(spec, [this](const process_exit& end) { ends[end.pid] = end; });
    if (!child) return child.failure();
    ends[child->pid].reset();
    return child->pid;
  }

  bool wait(const std::function<bool()>& done, duration limit) {
    const auto over = loop.run_until([&] { return interrupted != 0 || done(); }, limit);
    return over && interrupted == 0;
  }

  void sweep() {
    while (orphans.sweep(SIGKILL) != 0)
      (void)loop.run_until([] { return false; }, orphan_look);
  }

  expected<void> finish(std::int64_t pid, const std::string& program, duration limit) {
    const bool ended = wait([&] { return ends[pid].has_value(); }, limit);
    if (interrupted != 0) return error{errc::aborted, "interrupted"};
    if (!ended) return error{errc::timed_out, program + ": does not end"};
    const auto end = *ends[pid];
    ends.erase(pid);
    if (!end.signalled && end.code == 0) return {};
    return error{errc::process_died, program + ": " + end.text() + ": " + last_line()};
  }

  [[nodiscard]] fs::path log() const { return folder / "log"; }
  [[nodiscard]] std::string last_line() const {
    auto text = read_file(log());
    text.erase(text.find_last_not_of('\n') + 1);
    return text.substr(text.rfind('\n') + 1);
  }

  fs::path folder;
  orphan_reaper orphans;
  event_loop loop;
  host_clock clock{loop};
  host_process processes{loop};
  std::map<std::int64_t, std::optional<process_exit>> ends; // by process id
  int interrupted{0};
  signal_watcher signals{loop, {SIGINT, SIGTERM}, [this](int number) { interrupted = number; }};
};

job_runner::job_runner(std::unique_ptr<state> made)
    : state_{std::move(made)} {}
job_runner::~job_runner() = default;

expected<std::unique_ptr<job_runner>> job_runner::make() {
  auto name = (fs::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    return error{errc::storage_failed,
                 "no temporary folder can be made in " + fs::temp_directory_path().string()};
  return std::unique_ptr<job_runner>{new job_runner{std::make_unique<state>(name)}};
}

expected<std::string> job_runner::output_of(const std::string& program,
                                            const std::vector<std::string>& arguments, duration limit) {
  const auto output = folder() / "output";
  const auto pid = state_->start(program, arguments, output, {});
  if (!pid) return pid.failure();
  if (auto ended = state_->finish(*pid, program, limit); !ended) return ended.failure();
  return read_file(output);
}

expected<nlohmann::json> job_runner::summary_of(const std::string& program,
                                                std::vector<std::string> arguments, duration limit) {
  const auto path = folder() / "summary.json";
  std::error_code ignored;
  fs::remove(path, ignored);
  arguments.insert(arguments.end(), {"--quiet", "--summary", path.string()});
  if (auto ran = output_of(program, arguments, limit); !ran) return ran.failure();
  auto parsed = nlohmann::json::parse(read_file(path), nullptr, false);
  if (parsed.is_discarded()) return error{errc::corrupt, program + ": its summary is not JSON"};
  return parsed;
}

expected<run_account> job_runner::account_of(const std::string& program, std::vector<std::string> arguments,
                                             duration limit) {
  const auto path = folder() / "events.jsonl";
  std::error_code ignored;
  fs::remove(path, ignored);
  arguments.insert(arguments.end(), {"--events", path.string()});
  auto summary = summary_of(program, std::move(arguments), limit);
  if (!summary) return summary.failure();
  run_account out{std::move(*summary), {}};
  std::istringstream lines{read_file(path)};
  for (std::string line; std::getline(lines, line);) {
    out.events.push_back(nlohmann::json::parse(line, nullptr, false));
    if (out.events.back().is_discarded())
      return error{errc::corrupt, program + ": an event is not JSON: " + line};
  }
  return out;
}

namespace {

// Cuts what arrives into lines; ends itself when the other end closes.
class event_lines : public std::enable_shared_from_this<event_lines> {
public:
  event_lines(boost::asio::io_context& io, int fd, job_runner::event_handler each)
      : source_{io, fd}
      , each_{std::move(each)} {}
  void read() {
    source_.async_read_some(
        boost::asio::buffer(piece_),
        [self = shared_from_this()](const boost::system::error_code& failed, std::size_t bytes) {
          if (failed) return;
          self->take(bytes);
          self->read();
        });
  }

private:
  void take(std::size_t bytes) {
    pending_.append(piece_.data(), bytes);
    for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
      const auto event = nlohmann::json::parse(pending_.substr(0, end), nullptr, false);
      pending_.erase(0, end + 1);
      if (!event.is_discarded()) each_(event);
    }
  }
  boost::asio::posix::stream_descriptor source_;
  job_runner::event_handler each_;
  std::array<char, 4096> piece_{};
  std::string pending_;
};

} // namespace

expected<std::int64_t> job_runner::start_with_events(const std::string& program,
                                                     std::vector<std::string> arguments, event_handler each) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return error{errc::storage_failed, "no pipe can be made"};
  const unique_fd written{ends[1]};
  std::make_shared<event_lines>(state_->loop.io(), ends[0], std::move(each))->read();
  arguments.insert(arguments.end(), {"--quiet", "--events", "/proc/self/fd/" + std::to_string(ends[1])});
  return state_->start(program, arguments, "/dev/null", {ends[1]});
}

bool job_runner::runs(std::int64_t pid) const {
  const auto found = state_->ends.find(pid);
  return found != state_->ends.end() && !found->second;
}

void job_runner::signal(std::int64_t pid, int number) {
  (void)state_->processes.signal(pid, number);
}

bool job_runner::wait(const std::function<bool()>& done, duration limit) {
  return state_->wait(done, limit);
}

void job_runner::sweep() {
  state_->sweep();
}

const clock_seam& job_runner::clock() const {
  return state_->clock;
}

fs::path job_runner::folder() const {
  return state_->folder;
}

int job_runner::interrupted() const {
  return state_->interrupted;
}

std::string job_runner::last_line() const {
  return state_->last_line();
}

} // namespace troupe::bench
