// Program options: the command line of a training program, as validated job settings.
//
// In:       argv, the program's own defaults and extra options.
// Out:      settings to run with; or what to print, and the exit code. Nothing is printed or ended here.
// Fails:    exactly one line, "PROGRAM: --option VALUE: what is wrong; accepted: ...", exit code 2.
// Invariants:
//   CL-1    an error is one line that names the option, the value and what is accepted.
//   CL-2    parsing has no effect but reading the fault plan's file.
//   CL-3    every option is in --help.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/policy/job_settings.hpp"

namespace troupe {

struct program_info {
  std::string name;                    // "fashion_mnist": starts every error line
  std::string version;                 // "0.1.0"
  std::string summary;                 // one sentence for --help
  std::vector<std::string> examples{}; // command lines for --help; empty: general ones
};

// An option of the program's own; its value ends in job_settings::extra, in every process.
struct extra_option {
  std::string name;       // without dashes: "data"
  std::string value_name; // "DIR"
  std::string help;       // one line
  std::string fallback{}; // value when not given; empty: absent from `extra`
  // Says what is wrong with a value ("no such directory; accepted: ..."), or nothing.
  std::function<std::optional<std::string>(std::string_view)> check{};
};

struct command_line {
  std::optional<job_settings> settings{}; // present: run with these
  int exit_code{0};                       // otherwise: end with this,
  std::string out{};                      // after printing this to standard output
  std::string err{};                      // and this to standard error
};

class program_options {
public:
  // Text of a file; errc::bad_argument says why not.
  using file_reader = std::function<expected<std::string>(const std::string& path)>;

  explicit program_options(program_info info, job_settings defaults = {});
  // Throws std::invalid_argument for a name that is taken: a mistake in the program.
  program_options& add(extra_option option);
  void read_files_with(file_reader reader) { read_ = std::move(reader); }

  [[nodiscard]] command_line parse(int argc, const char* const* argv) const;
  [[nodiscard]] command_line parse(const std::vector<std::string>& arguments) const; // without argv[0]
  [[nodiscard]] std::string help() const;

private:
  program_info info_;
  job_settings defaults_;
  std::vector<extra_option> extras_;
  file_reader read_;
};

} // namespace troupe
