#include "cli/options/program_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/options/help_text.hpp"
#include "cli/options/job_options.hpp"
#include "runtime/policy/nearest_name.hpp"

namespace troupe {
namespace {

constexpr std::size_t plan_file_bytes_max = std::size_t{1} << 20;
constexpr std::size_t quoted_value_bytes_max = 200; // of a value, in an error

expected<std::string> read_text_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) return error{errc::bad_argument, std::string{"cannot be read: "} + std::strerror(errno)};
  std::string text(plan_file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || text.size() > plan_file_bytes_max)
    return error{errc::bad_argument, "cannot be read: not a file of at most 1MiB"};
  return text;
}

// The command line as CLI11 cuts it: for each option the values given, in order, still text.
struct tokens {
  std::unique_ptr<CLI::App> app;
  std::vector<std::vector<std::string>> job;    // as in job_options()
  std::vector<std::vector<std::string>> extras; // as the program added them
  std::vector<std::string> plans;
  bool help{false};
  bool version{false};
  bool timeouts{false};
};

std::string dashed(std::string_view name) {
  return "--" + std::string{name};
}

CLI::Option* add_text(CLI::App& app, std::string_view name, std::vector<std::string>& into,
                      std::string_view help, std::string_view value_name, std::string_view group) {
  return app.add_option(std::string{name}, into, std::string{help})
      ->type_name(std::string{value_name})
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(std::string{group});
}

void add_flag(CLI::App& app, std::string_view name, bool& into, std::string_view help,
              std::string_view group) {
  app.add_flag(std::string{name}, into, std::string{help})
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group(std::string{group});
}

void add_program_options(tokens& t, const program_info& info, const std::vector<extra_option>& extras) {
  for (std::size_t i = 0; i < extras.size(); ++i) {
    const auto& option = extras[i];
    const auto help = option.help + (option.fallback.empty() ? "" : " (" + option.fallback + ")");
    add_text(*t.app, dashed(option.name), t.extras[i], help, option.value_name, info.name);
  }
}

std::unique_ptr<tokens> declare(const program_info& info, const std::vector<extra_option>& extras) {
  auto t = std::make_unique<tokens>();
  t->app = std::make_unique<CLI::App>(info.summary, info.name);
  auto& app = *t->app;
  app.set_help_flag();
  app.allow_extras();
  app.get_formatter()->column_width(34);
  app.footer("\n" + help_footer(info));
  const auto options = job_options();
  t->job.resize(options.size());
  t->extras.resize(extras.size());
  add_program_options(*t, info, extras);
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& option = options[i];
    if (option.value_name.empty()) {
      app.add_flag_callback(
             std::string{option.name}, [&values = t->job[i]] { values.assign(1, "yes"); },
             std::string{option.help})
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
          ->group(std::string{option.group});
    } else {
      add_text(app, option.name, t->job[i], option.help, option.value_name, option.group);
    }
    if (option.name == "--fault")
      add_text(app, fault_plan_option, t->plans, "a TOML file of faults, one [[fault]] table each", "FILE",
               option.group);
    if (option.name == "--detect-after")
      add_flag(app, timeouts_option, t->timeouts, "prints what derives from --detect-after, and ends",
               option.group);
  }
  add_flag(app, "-h,--help", t->help, "prints this, and ends", "Help");
  add_flag(app, "--version", t->version, "prints the version, and ends", "Help");
  return t;
}

std::vector<std::string_view> names_of(const std::vector<extra_option>& extras,
                                       std::vector<std::string>& storage) {
  for (const auto& option : extras)
    storage.push_back(dashed(option.name));
  std::vector<std::string_view> names{storage.begin(), storage.end()};
  for (const auto& option : job_options())
    names.push_back(option.name);
  for (const auto name :
       {fault_plan_option, timeouts_option, std::string_view{"--help"}, std::string_view{"--version"}})
    names.push_back(name);
  return names;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string shortened(std::string_view value) {
  return std::string{value.substr(0, quoted_value_bytes_max)} +
         (value.size() > quoted_value_bytes_max ? "..." : "");
}

// One line, whatever was typed (CL-1).
command_line usage_error(const program_info& info, std::string_view text) {
  std::string line = info.name + ": ";
  for (const char c : text)
    line += is_control(c) ? '?' : c;
  return {.exit_code = exit_code_of(errc::bad_argument), .err = line + "\n"};
}

std::string about(std::string_view option, std::string_view value, std::string_view what,
                  std::string_view accepted) {
  return std::string{option} + (value.empty() ? "" : " " + shortened(value)) + ": " + std::string{what} +
         (accepted.empty() ? "" : "; accepted: " + std::string{accepted});
}

std::string unknown_argument(const program_info& info, const std::vector<extra_option>& extras,
                             const std::string& argument) {
  const auto help = info.name + " --help lists the options";
  if (!argument.starts_with("-")) return about(shortened(argument), "", "unexpected argument", help);
  std::vector<std::string> storage;
  const auto names = names_of(extras, storage);
  const auto name = argument.substr(0, argument.find('='));
  const auto value = name.size() < argument.size() ? argument.substr(name.size() + 1) : "";
  const auto near = nearest_name(name, names);
  return about(shortened(name), value,
               "unknown option" + (near.empty() ? "" : " (did you mean " + std::string{near} + "?)"), help);
}

std::string value_missing(std::string_view name) {
  for (const auto& option : job_options()) {
    if (option.name == name)
      return about(name, "", "a value is missing",
                   option.accepted.empty() ? option.value_name : option.accepted);
  }
  return about(name, "", "a value is missing", "a value");
}

// What CLI11 refuses is a missing value at the end of the line; it names the option first.
std::string cut_error(const CLI::ParseError& bad) {
  const std::string text = bad.what();
  return text.starts_with("--") ? value_missing(text.substr(0, text.find(':'))) : text;
}

// Errors of the steps below are whole lines, without the program's name.
using outcome = std::optional<std::string>;

outcome check_flags(const std::vector<std::string>& arguments) {
  for (const auto& argument : arguments) {
    const auto name = argument.substr(0, argument.find('='));
    if (name.size() == argument.size()) continue;
    const auto options = job_options();
    const auto at = std::ranges::find(options, name, &job_option::name);
    const bool flag = (at != options.end() && at->value_name.empty()) || name == timeouts_option ||
                      name == "--help" || name == "--version";
    if (flag) return about(name, argument.substr(name.size() + 1), "takes no value", name);
  }
  return std::nullopt;
}

// CLI11 takes the word that follows an option as its value, even the next option's name.
outcome check_values_given(const tokens& t) {
  for (const auto* option : t.app->get_options()) {
    const auto& values = option->results();
    if (option->get_items_expected_max() > 0 &&
        std::ranges::any_of(values, [](const std::string& v) { return v.starts_with("--"); }))
      return value_missing(option->get_name());
  }
  return std::nullopt;
}

outcome take_single(const std::vector<std::string>& values, std::string_view name,
                    std::string_view accepted) {
  if (values.size() > 1) return about(name, values[1], "given twice", "once");
  if (values[0].empty()) return about(name, "''", "empty", accepted);
  return std::nullopt;
}

outcome take_job_options(const tokens& t, job_settings& settings) {
  const auto options = job_options();
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& option = options[i];
    const auto& values = t.job[i];
    if (values.empty()) continue;
    if (!option.repeatable) {
      if (auto bad = take_single(values, option.name, option.accepted)) return bad;
    }
    for (const auto& value : values) {
      if (const auto bad = option.store(settings, value))
        return about(option.name, value.empty() ? "''" : value, *bad, option.accepted);
    }
  }
  return std::nullopt;
}

outcome take_extras(const tokens& t, const std::vector<extra_option>& extras, job_settings& settings) {
  for (std::size_t i = 0; i < extras.size(); ++i) {
    const auto& option = extras[i];
    const auto& values = t.extras[i];
    if (values.empty()) {
      if (!option.fallback.empty()) settings.extra[option.name] = option.fallback;
      continue;
    }
    if (auto bad = take_single(values, dashed(option.name), option.value_name)) return bad;
    if (option.check) {
      if (const auto bad = option.check(values[0])) return about(dashed(option.name), values[0], *bad, "");
    }
    settings.extra[option.name] = values[0];
  }
  return std::nullopt;
}

outcome take_plans(const tokens& t, const program_options::file_reader& read, job_settings& settings) {
  for (const auto& path : t.plans) {
    const auto text = read(path);
    if (!text) return about(fault_plan_option, path, text.failure().text, "a TOML file of [[fault]] tables");
    const auto plan = parse_fault_plan(*text, path);
    if (!plan) return std::string{fault_plan_option} + " " + plan.failure().text;
    settings.faults.insert(settings.faults.end(), plan->begin(), plan->end());
  }
  return std::nullopt;
}

bool given(const tokens& t, std::string_view name) {
  const auto options = job_options();
  const auto at = std::ranges::find(options, name, &job_option::name);
  return at != options.end() && !t.job[static_cast<std::size_t>(at - options.begin())].empty();
}

// Combinations that only show in what was typed, not in the settings.
outcome check_given(const tokens& t, const job_settings& settings) {
  if (!settings.checkpoint_dir.empty()) return std::nullopt;
  for (const auto* name : {"--checkpoint-every", "--keep"}) {
    if (given(t, name))
      return about(name, "", "there are no checkpoints without --checkpoint-dir",
                   "with --checkpoint-dir DIR");
  }
  return std::nullopt;
}

} // namespace

program_options::program_options(program_info info, job_settings defaults)
    : info_{std::move(info)}
    , defaults_{std::move(defaults)}
    , read_{read_text_file} {}

program_options& program_options::add(extra_option option) {
  std::vector<std::string> storage;
  const auto names = names_of(extras_, storage);
  if (option.name.empty() || std::ranges::find(names, dashed(option.name)) != names.end())
    throw std::invalid_argument{"option " + dashed(option.name) + " exists already"};
  extras_.push_back(std::move(option));
  return *this;
}

std::string program_options::help() const {
  return declare(info_, extras_)->app->help();
}

command_line program_options::parse(int argc, const char* const* argv) const {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i)
    arguments.emplace_back(argv[i]);
  return parse(arguments);
}

command_line program_options::parse(const std::vector<std::string>& arguments) const {
  if (const auto bad = check_flags(arguments)) return usage_error(info_, *bad);
  const auto t = declare(info_, extras_);
  try {
    t->app->parse(
        std::vector<std::string>{arguments.rbegin(), arguments.rend()}); // CLI11 takes them reversed
  } catch (const CLI::ParseError& bad) {
    return usage_error(info_, cut_error(bad));
  }
  if (const auto bad = check_values_given(*t)) return usage_error(info_, *bad);
  if (t->help) return {.out = t->app->help()};
  if (t->version) return {.out = info_.name + " " + info_.version + "\n"};
  if (const auto rest = t->app->remaining(); !rest.empty())
    return usage_error(info_, unknown_argument(info_, extras_, rest.front()));

  job_settings settings = defaults_;
  if (given(*t, "--steps") != given(*t, "--epochs")) // one of them replaces the program's default length
    settings.steps.reset(), settings.epochs.reset();
  if (const auto bad = take_job_options(*t, settings)) return usage_error(info_, *bad);
  if (const auto bad = take_extras(*t, extras_, settings)) return usage_error(info_, *bad);
  if (const auto bad = take_plans(*t, read_, settings)) return usage_error(info_, *bad);
  if (const auto bad = check_given(*t, settings)) return usage_error(info_, *bad);
  if (const auto valid = settings.validate(); !valid) return usage_error(info_, valid.failure().text);
  if (t->timeouts) return {.out = timeouts::derive(settings.detect_after).table()};
  return {.settings = std::move(settings)};
}

} // namespace troupe
