#include "cli/chaos/chaos_settings.hpp"

#include <algorithm>
#include <array>

#include "runtime/base/units.hpp"
#include "runtime/policy/nearest_name.hpp"

namespace troupe::chaos {
namespace {

// Of the program: given by chaos, for each run anew.
constexpr std::array<std::string_view, 7> given_here{"--checkpoint-dir", "--events", "--summary", "--resume",
                                                     "--fault-plan",     "--fault",  "--join"};

error wrong(const std::string& what, const std::string& accepted) {
  return {errc::bad_argument, what + "; accepted: " + accepted};
}

expected<duration> duration_of(const std::string& option, const std::string& text) {
  const auto parsed = parse_duration(text);
  if (!parsed || *parsed < std::chrono::milliseconds{1})
    return wrong(option + " " + text, "a duration such as 500ms, 3s or 2min, from 1ms");
  return *parsed;
}

expected<std::vector<std::string>> kinds_of(const std::string& list) {
  const auto known = known_kinds();
  if (list.empty()) return std::vector<std::string>{known.begin(), known.end()};
  std::vector<std::string> kinds;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto name = list.substr(begin, end - begin);
    begin = end + 1;
    if (std::ranges::find(known, name) == known.end()) {
      const auto near = nearest_name(name, known);
      return wrong("--faults " + name + ": not a fault that this build can inject" +
                       (near.empty() ? "" : " (did you mean " + std::string{near} + "?)"),
                   listed(known) + ", with commas between");
    }
    if (std::ranges::find(kinds, name) == kinds.end()) kinds.push_back(name);
  }
  return kinds;
}

expected<void> check_program(const std::vector<std::string>& rest) {
  if (rest.empty() || rest.front().empty())
    return wrong("PROGRAM is missing", "troupe chaos [OPTIONS] -- PROGRAM [ARG...]");
  for (auto argument = rest.begin() + 1; argument != rest.end(); ++argument) {
    const auto name = std::string_view{*argument}.substr(0, argument->find('='));
    if (std::ranges::find(given_here, name) != given_here.end())
      return wrong("PROGRAM ... " + *argument + ": chaos gives this option itself",
                   "other options of the program");
  }
  return {};
}

std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word)
    text += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return text + "'";
}

} // namespace

expected<chaos_settings> check(const chaos_options& options, const std::vector<std::string>& rest) {
  if (auto right = check_program(rest); !right) return right.failure();
  chaos_settings settings{.program = rest.front(),
                          .arguments = {rest.begin() + 1, rest.end()},
                          .runs = options.runs,
                          .first_run = options.first_run,
                          .keep = options.keep,
                          .report = options.report,
                          .stop_on_first = options.stop_on_first,
                          .json = options.json};
  const auto mtbf = duration_of("--mtbf", options.mtbf);
  if (!mtbf) return mtbf.failure();
  const auto kinds = kinds_of(options.faults);
  if (!kinds) return kinds.failure();
  settings.plan = {options.seed, *mtbf, *kinds};
  if (options.time_limit.empty()) return settings;
  const auto limit = duration_of("--time-limit", options.time_limit);
  if (!limit) return limit.failure();
  settings.time_limit = *limit;
  return settings;
}

std::string replay_command(const chaos_settings& settings, std::uint32_t run) {
  std::string kinds;
  for (const auto& kind : settings.plan.kinds)
    kinds += (kinds.empty() ? "" : ",") + kind;
  auto text = "troupe chaos -n 1 --first-run " + std::to_string(run) + " --seed " +
              std::to_string(settings.plan.seed) + " --mtbf " + format_duration(settings.plan.mtbf) +
              " --faults " + kinds + " -- " + quoted(settings.program);
  for (const auto& argument : settings.arguments)
    text += " " + quoted(argument);
  return text;
}

} // namespace troupe::chaos
