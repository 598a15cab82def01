#include "cli/chaos/chaos_command.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>

#include <unistd.h>

#include "cli/chaos/chaos_report.hpp"
#include "cli/launch/program_file.hpp"
#include "runtime/base/units.hpp"
#include "runtime/host/system_error.hpp"
#include "runtime/host/text_writer.hpp"

namespace troupe {
namespace {

using namespace chaos;
namespace fs = std::filesystem;

constexpr int exit_right = 0;
constexpr int exit_wrong = 1;
constexpr int exit_signalled = 128;
constexpr duration calm_limit = std::chrono::minutes{30};
constexpr int limit_in_calm_runs = 10;
constexpr duration limit_least = std::chrono::minutes{2};

// Where runs are written: the folder asked for, or a temporary one that goes when every run was right.
class run_folder {
public:
  static expected<run_folder> make(const std::string& keep) {
    std::error_code failed;
    if (keep.empty()) {
      auto name = (fs::temp_directory_path(failed) / "troupe-chaos-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) return file_error("make", name, errno);
      return run_folder{name, true};
    }
    fs::create_directories(keep, failed);
    if (failed || !fs::is_directory(keep) || !fs::is_empty(keep, failed) || failed)
      return error{errc::bad_argument, "--keep " + keep + ": " +
                                           (failed ? failed.message() : std::string{"not empty"}) +
                                           "; accepted: a folder that is new or empty"};
    return run_folder{fs::absolute(keep), false};
  }
  [[nodiscard]] fs::path of_run(std::uint32_t number) const {
    std::array<char, 24> name{};
    std::snprintf(name.data(), name.size(), "run-%03u", number);
    return path_ / name.data();
  }
  [[nodiscard]] fs::path of_calm_run() const { return path_ / "fault-free"; }
  // What nobody will look at: all of a run, or what is large in it.
  void clear(const fs::path& run) const {
    std::error_code failed;
    fs::remove_all(temporary_ ? run : run / "checkpoints", failed);
  }
  void finish() const {
    std::error_code not_empty;
    if (temporary_) fs::remove(path_, not_empty);
  }

private:
  run_folder(fs::path path, bool temporary)
      : path_{std::move(path)}
      , temporary_{temporary} {}
  fs::path path_;
  bool temporary_;
};

// The transient line on a terminal.
class progress_note {
public:
  progress_note(std::ostream& err, bool shown)
      : err_{err}
      , shown_{shown} {}
  void say(const std::string& text) {
    if (!shown_ || text == said_) return;
    err_ << "\r\033[K" << text << std::flush;
    said_ = text;
  }
  void clear() { say(""); }

private:
  std::ostream& err_;
  bool shown_;
  std::string said_;
};

class chaos_session {
public:
  chaos_session(const chaos_settings& settings, run_folder folder, std::string program, std::ostream& out,
                std::ostream& err)
      : folder_{std::move(folder)}
      , program_{std::move(program)}
      , out_{out}
      , err_{err}
      , note_{err, standard_error_is_terminal() && !settings.json} {
    report_.settings = settings;
  }

  expected<void> calm_run() {
    const auto folder = folder_.of_calm_run();
    const auto ran = run("fault-free run", {}, folder, report_.settings.time_limit.value_or(calm_limit));
    if (!ran) return ran.failure();
    if (stage_.interrupted() != 0) return give_up(folder, {errc::aborted, "interrupted"});
    auto calm = reference_of(*ran);
    if (!calm) return give_up(folder, calm.failure());
    report_.calm = *calm;
    own_descriptors_ = own_descriptors();
    folder_.clear(folder);
    if (!report_.settings.json) out_ << heading_of(report_) << std::flush;
    return {};
  }

  expected<void> all_runs() {
    const auto& settings = report_.settings;
    for (std::uint32_t i = 0; i < settings.runs && stage_.interrupted() == 0; ++i) {
      if (auto done = one_run(settings.first_run + i); !done) return done;
      if (settings.stop_on_first && !report_.right()) break;
    }
    return {};
  }

  const chaos_report& finish() {
    report_.interrupted = stage_.interrupted();
    folder_.finish();
    return report_;
  }
  [[nodiscard]] int interrupted() const { return stage_.interrupted(); }

private:
  expected<run_result> run(const std::string& name, std::vector<strike> plan, const fs::path& folder,
                           duration limit) {
    auto ran = stage_.run({.program = program_,
                           .arguments = report_.settings.arguments,
                           .plan = std::move(plan),
                           .folder = folder,
                           .time_limit = limit},
                          [&](duration elapsed) {
                            note_.say(name + ": " + std::to_string(static_cast<long>(to_s(elapsed))) + " s");
                          });
    note_.clear();
    return ran;
  }

  expected<void> one_run(std::uint32_t number) {
    const auto& settings = report_.settings;
    const auto& calm = report_.calm;
    const auto folder = folder_.of_run(number);
    auto ran =
        run("run " + std::to_string(number), draw_plan(settings.plan, number, calm.length, calm.workers),
            folder, settings.time_limit.value_or(std::max(limit_in_calm_runs * calm.wall, limit_least)));
    if (!ran) return ran.failure();
    if (stage_.interrupted() != 0) { // not judged: it was ended
      folder_.clear(folder);
      return {};
    }
    auto verdict = judge(number, std::move(*ran), calm);
    if (own_descriptors() > own_descriptors_)
      verdict.leaks.push_back("descriptors of troupe chaos itself: " + std::to_string(own_descriptors()) +
                              ", " + std::to_string(own_descriptors_) + " before");
    if (verdict.right()) folder_.clear(folder);
    if (!settings.json) {
      out_ << row_of(verdict) << std::flush;
      err_ << account_of(verdict, settings) << std::flush;
    }
    report_.runs.push_back(std::move(verdict));
    return {};
  }

  error give_up(const fs::path& folder, const error& cause) {
    folder_.clear(folder);
    folder_.finish();
    return cause;
  }

  run_folder folder_;
  std::string program_;
  std::ostream& out_;
  std::ostream& err_;
  progress_note note_;
  run_stage stage_;
  chaos_report report_;
  std::uint64_t own_descriptors_{0};
};

int refuse(std::ostream& err, const error& cause) {
  err << "troupe chaos: " << cause.text << "\n";
  return exit_code_of(errc::bad_argument);
}

} // namespace

int run_chaos(const chaos_settings& settings, std::ostream& out, std::ostream& err) {
  const char* search_path = std::getenv("PATH");
  const auto program = find_program(settings.program, search_path == nullptr ? "" : search_path);
  if (!program) return refuse(err, program.failure());
  std::ofstream report_file;
  if (!settings.report.empty()) report_file.open(settings.report);
  if (!settings.report.empty() && !report_file)
    return refuse(err,
                  {errc::bad_argument, "--report " + settings.report +
                                           ": cannot be written; accepted: a file in a folder that can"});
  auto folder = run_folder::make(settings.keep);
  if (!folder) return refuse(err, folder.failure());

  chaos_session session{settings, std::move(*folder), *program, out, err};
  if (auto ran = session.calm_run(); !ran) {
    if (session.interrupted() != 0) return exit_signalled + session.interrupted();
    return refuse(err, ran.failure());
  }
  if (auto ran = session.all_runs(); !ran) return refuse(err, ran.failure());
  const auto& report = session.finish();
  if (settings.json)
    out << to_json(report) << "\n";
  else
    out << summary_of(report);
  if (report_file.is_open()) report_file << to_json(report) << "\n";
  if (report.interrupted != 0) return exit_signalled + report.interrupted;
  return report.right() ? exit_right : exit_wrong;
}

} // namespace troupe
