#include "cli/chaos/chaos_run.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "cli/chaos/event_file.hpp"
#include "cli/chaos/leftovers.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_process.hpp"
#include "runtime/host/orphan_reaper.hpp"
#include "runtime/host/signal_watcher.hpp"

namespace troupe::chaos {
namespace {

namespace fs = std::filesystem;

constexpr duration look_interval = std::chrono::milliseconds{100};
constexpr std::uint32_t looks_per_sample = 2;
constexpr duration settle_look = std::chrono::milliseconds{10};
constexpr duration settle_grace = std::chrono::seconds{2}; // for what ends by itself after the job
constexpr duration end_grace = std::chrono::seconds{10};   // from SIGTERM to SIGKILL, when interrupted
constexpr std::size_t attempts_max = 2;                    // a plan kills one director at most (CH-3)

std::string text_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

std::string last_line_of(const fs::path& path) {
  auto text = text_of(path);
  text.erase(text.find_last_not_of('\n') + 1);
  return text.substr(text.rfind('\n') + 1);
}

// The newest process of a rank, as the events tell.
std::int64_t pid_of_rank(const std::vector<nlohmann::json>& events, std::uint32_t rank) {
  std::int64_t pid = 0;
  for (const auto& event : events) {
    if (word(event, "event") == "worker_started" && number(event, "rank") == rank)
      pid = static_cast<std::int64_t>(number(event, "pid").value_or(0));
  }
  return pid;
}

// The most of each role.
role_usage by_role(const std::map<std::int64_t, process_usage>& usages,
                   const std::vector<std::int64_t>& directors) {
  role_usage roles;
  for (const auto& [pid, usage] : usages) {
    const bool director = std::ranges::find(directors, pid) != directors.end();
    keep_most(director ? roles.director : roles.worker, usage);
  }
  return roles;
}

} // namespace

struct run_machinery {
  orphan_reaper orphans;
  event_loop loop;
  host_clock clock{loop};
  host_process processes{loop};
  int interrupted{0};
  bool interrupted_again{false};
  signal_watcher signals{loop, {SIGINT, SIGTERM}, [this](int number) {
                           interrupted_again = interrupted != 0;
                           if (interrupted == 0) interrupted = number;
                         }};
  std::uint64_t runs{0};

  void pause(duration limit) {
    (void)loop.run_until([] { return false; }, limit);
  }
};

namespace {

// One run under way.
class one_run {
public:
  one_run(run_machinery& stage, const run_request& request)
      : stage_{stage}
      , request_{request}
      , watch_{std::to_string(::getpid()) + "-" + std::to_string(++stage.runs)}
      , before_{machine_now()}
      , began_{stage.clock.now()} {
    result_.plan = request.plan;
    result_.folder = request.folder;
    result_.struck.resize(request.plan.size());
  }

  expected<run_result> until_over(const std::function<void(duration)>& progress) && {
    if (auto started = start_director(); !started) return started.failure();
    for (std::uint32_t looks = 0; !over_; ++looks) {
      (void)stage_.loop.run_until([this] { return over_; }, look_interval);
      if (looks % looks_per_sample == 0) watch_.sample();
      note_first_event();
      strike_what_is_due();
      continue_what_is_due();
      end_what_must_end();
      progress(elapsed());
    }
    result_.wall = elapsed();
    clear_away();
    look_for_leftovers();
    read_what_it_said();
    return std::move(result_);
  }

private:
  [[nodiscard]] duration elapsed() const { return stage_.clock.now() - began_; }
  [[nodiscard]] fs::path events_file(std::size_t attempt) const {
    return request_.folder / ("events-" + std::to_string(attempt + 1) + ".jsonl");
  }

  // Through a shell, which only redirects and becomes the program.
  [[nodiscard]] process_spec spec() const {
    const auto& folder = request_.folder;
    process_spec spec{
        .program = "/bin/sh",
        .arguments = {"-c", "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh", (folder / "log").string(),
                      request_.program},
        .environment = {mark_variable + ("=" + watch_.mark()), "TMPDIR=" + (folder / "tmp").string()}};
    auto& arguments = spec.arguments;
    arguments.insert(arguments.end(), request_.arguments.begin(), request_.arguments.end());
    arguments.insert(arguments.end(), {"--quiet", "--checkpoint-dir", (folder / "checkpoints").string(),
                                       "--events", events_file(result_.attempts.size()).string(), "--summary",
                                       (folder / "summary.json").string()});
    if (!request_.plan.empty())
      arguments.insert(arguments.end(), {"--fault-plan", (folder / "plan.toml").string()});
    return spec;
  }

  expected<void> start_director() {
    auto child = stage_.processes.start(spec(), [this](const process_exit& end) { ended(end); });
    if (!child) return child.failure();
    director_ = child->pid;
    directors_.push_back(child->pid);
    result_.attempts.push_back({.started = elapsed()});
    return {};
  }

  void ended(const process_exit& end) {
    auto& last = result_.attempts.back();
    last.ended = elapsed();
    last.end = end;
    const bool killed = end.signalled && end.code == SIGKILL;
    const bool goes_on = killed && director_was_struck() && stage_.interrupted == 0 && result_.hung.empty() &&
                         result_.attempts.size() < attempts_max;
    if (!goes_on) {
      over_ = true;
      return;
    }
    // A stop ends by its director's signal, which will not come any more.
    watch_.signal_all(SIGCONT);
    over_ = !start_director();
  }

  [[nodiscard]] bool director_was_struck() const {
    const auto ran = result_.attempts.back().ended - result_.attempts.back().started;
    for (std::size_t i = 0; i < request_.plan.size(); ++i) {
      const auto& one = request_.plan[i];
      if (one.kills_director() && (one.inside ? one.at <= ran : result_.struck[i].has_value())) return true;
    }
    return false;
  }

  // A successor waits for the processes of the one before: its job begins long after it was started.
  void note_first_event() {
    auto& last = result_.attempts.back();
    std::error_code absent;
    if (last.told || fs::file_size(events_file(result_.attempts.size() - 1), absent) == 0 || absent) return;
    last.told = elapsed();
  }

  // From outside. One whose process is just being replaced is struck as soon as it is there again.
  void strike_what_is_due() {
    const auto began = result_.attempts.front().told;
    if (over_ || !began) return;
    for (std::size_t i = 0; i < request_.plan.size(); ++i) {
      const auto& one = request_.plan[i];
      if (one.inside || result_.struck[i] || elapsed() < *began + one.at) continue;
      const auto pid = one.rank
                           ? pid_of_rank(read_events(events_file(result_.attempts.size() - 1)), *one.rank)
                           : director_;
      const bool stops = one.lasting != duration{0};
      if (pid == 0 || !watch_.signal(pid, stops ? SIGSTOP : SIGKILL)) continue;
      result_.struck[i] = elapsed();
      if (stops) stopped_.push_back({pid, elapsed() + one.lasting});
    }
  }

  void continue_what_is_due() {
    std::erase_if(stopped_, [this](const stopped& one) {
      if (one.until > elapsed()) return false;
      (void)watch_.signal(one.pid, SIGCONT);
      return true;
    });
  }

  // CR-2, CR-3.
  void end_what_must_end() {
    if (over_) return;
    if (elapsed() > request_.time_limit && result_.hung.empty()) {
      result_.hung = watch_.describe_living();
      watch_.signal_all(SIGKILL);
    }
    if (stage_.interrupted == 0) return;
    if (!told_to_end_) {
      told_to_end_ = elapsed();
      (void)stage_.processes.signal(director_, SIGTERM);
      (void)stage_.processes.signal(director_, SIGCONT);
    }
    if (stage_.interrupted_again || elapsed() - *told_to_end_ > end_grace) watch_.signal_all(SIGKILL);
  }

  // CR-1.
  void clear_away() {
    const auto settled = elapsed() + settle_grace;
    while (!watch_.living().empty() && elapsed() < settled)
      stage_.pause(settle_look);
    for (const auto& process : watch_.describe_living())
      result_.leaks.push_back("process " + process + " was left");
    do {
      watch_.signal_all(SIGKILL);
      stage_.pause(settle_look);
    } while (stage_.orphans.sweep(SIGKILL) != 0 || !watch_.living().empty());
  }

  void look_for_leftovers() {
    const auto add = [this](std::vector<std::string> found) {
      result_.leaks.insert(result_.leaks.end(), found.begin(), found.end());
    };
    add(machine_leftovers(before_, [this](std::int64_t pid) { return watch_.seen(pid); }));
    add(files_in(request_.folder / "tmp", "temporary file"));
    if (stage_.interrupted == 0 && result_.hung.empty()) add(unfinished_in(request_.folder / "checkpoints"));
    result_.at_end = by_role(watch_.at_end(), directors_);
    result_.at_most = by_role(watch_.at_most(), directors_);
  }

  void read_what_it_said() {
    for (std::size_t i = 0; i < result_.attempts.size(); ++i)
      result_.attempts[i].events = read_events(events_file(i));
    result_.last_line = last_line_of(request_.folder / "log");
    auto summary = nlohmann::json::parse(text_of(request_.folder / "summary.json"), nullptr, false);
    if (summary.is_object()) result_.summary = std::move(summary);
  }

  struct stopped {
    std::int64_t pid;
    duration until;
  };
  run_machinery& stage_;
  const run_request& request_;
  process_watch watch_;
  machine_state before_;
  time_point began_;
  run_result result_;
  std::int64_t director_{0};
  std::vector<std::int64_t> directors_;
  std::vector<stopped> stopped_;
  std::optional<duration> told_to_end_;
  bool over_{false};
};

} // namespace

run_stage::run_stage()
    : machinery_{std::make_unique<run_machinery>()} {}
run_stage::~run_stage() = default;

expected<run_result> run_stage::run(const run_request& request,
                                    const std::function<void(duration)>& progress) {
  std::error_code failed;
  fs::create_directories(request.folder / "tmp", failed);
  if (failed)
    return error{errc::storage_failed, "cannot make " + request.folder.string() + ": " + failed.message()};
  std::ofstream{request.folder / "plan.toml"} << to_toml(request.plan);
  return one_run{*machinery_, request}.until_over(progress);
}

int run_stage::interrupted() const {
  return machinery_->interrupted;
}

} // namespace troupe::chaos
