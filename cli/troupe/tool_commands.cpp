#include "cli/troupe/tool_commands.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>

#include "runtime/base/units.hpp"
#include "runtime/policy/nearest_name.hpp"
#include "runtime/policy/timeouts.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 7> built{"run", "ckpt", "bench", "sim", "chaos", "doctor", "flight"};
constexpr std::array<std::string_view, 1> planned{"top"};
constexpr std::array<std::string_view, 5> benches_built{"step", "recovery", "allreduce", "message",
                                                        "overlap"};
constexpr std::array<std::string_view, 2> benches_planned{"checkpoint", "data"};

constexpr std::array<std::string_view, 3> run_valued{"-n", "--as", "--grace"};

constexpr auto run_footer = R"(
PROGRAM [ARG...] come after these options; all that follows PROGRAM is its own.
A Troupe program is its own director: it is started once, with --workers N if -n was given. It is known by a
note in its file; for a script that starts one, say --as troupe.
Any other program is started N times, with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and
MASTER_PORT (127.0.0.1, a port that was free). Copies read nothing from standard input.
When a copy fails the others get SIGTERM, and SIGKILL after the grace; signals are passed on; what the copies
leave running is ended. Exit code: that of the first failure (128 + N for signal N), else 0.

  troupe run -n 2 build/bin/fashion_mnist --epochs 2
  troupe run -n 4 python3 train.py --lr 0.1)";

constexpr auto bench_footer = R"(
  step       samples/s and step times with 1 and 2 workers, beside a bare loop of the same kernels;
             allocations and page faults of a step
  recovery   workers are killed and stopped: when it is noticed, when training goes on; beside a full restart
  allreduce  the sum of gradients between processes of one host beside Gloo, Open MPI and memory copies
  overlap    gradients summed during backward beside after it, where both take equally long
  message    actor messages between two processes beside raw UCX, CAF's network module and gRPC

Tables go to standard output, what is being run to standard error.)";

// What was parsed, before it is checked.
struct parsed {
  run_command run;
  ckpt_options ckpt;
  bench_command bench;
  sim_options sim;
  chaos::chaos_options chaos;
  doctor_options doctor;
  flight_options flight;
  std::optional<std::uint32_t> copies;
  std::string as, grace, detect_after;
};

CLI::App* declare_run(CLI::App& app, parsed& into) {
  auto* run = app.add_subcommand("run", "starts a program, Troupe's or any other, and waits for it");
  run->add_option("-n", into.copies, "workers of a Troupe program; copies of another one (1)")
      ->type_name("N")
      ->check(CLI::Range(std::uint32_t{1}, copies_max));
  run->add_option("--as", into.as, "what the program is, instead of looking")
      ->check(CLI::IsMember({"troupe", "foreign"}));
  run->add_option("--grace", into.grace, "from SIGTERM to SIGKILL (5s; a Troupe program: 90s)")
      ->type_name("DURATION");
  run->add_flag("--json", into.run.json,
                "one JSON object on standard output; the program's goes to standard error");
  run->footer(run_footer);
  return run;
}

void add_common(CLI::App& bench, parsed& into, bench_kind what) {
  bench.add_flag("--json", into.bench.json, "one JSON object on standard output");
  bench.add_flag("--quick", into.bench.quick, "one short round, for a look: the numbers mean little");
  bench.callback([&into, what] { into.bench.what = what; });
}

CLI::App* declare_bench(CLI::App& app, parsed& into) {
  auto* bench = app.add_subcommand("bench", "measures this build on this machine, beside baselines");
  bench->require_subcommand(1);
  auto* step = bench->add_subcommand("step", "a training step beside a bare loop of the same kernels");
  add_common(*step, into, bench_kind::step);
  step->add_option("--repetitions", into.bench.repetitions, "runs of each row, which take turns (5)")
      ->check(CLI::Range(1U, 1000U));
  step->add_option("--data", into.bench.data, "folder of the Fashion-MNIST files")->type_name("DIR");
  auto* recovery =
      bench->add_subcommand("recovery", "how soon a failure is noticed, how soon training goes on");
  add_common(*recovery, into, bench_kind::recovery);
  recovery->add_option("--repetitions", into.bench.repetitions, "strikes of each row, at least (10)")
      ->check(CLI::Range(1U, 1000U));
  recovery->add_option("--detect-after", into.detect_after, "of the jobs (1s)")->type_name("DURATION");
  auto* allreduce =
      bench->add_subcommand("allreduce", "the sum of gradients between processes, beside baselines");
  add_common(*allreduce, into, bench_kind::allreduce);
  allreduce
      ->add_option("--repetitions", into.bench.repetitions, "runs of each system at each size, in turns (5)")
      ->check(CLI::Range(1U, 1000U));
  auto* overlap = bench->add_subcommand("overlap", "gradients summed during backward, beside after it");
  add_common(*overlap, into, bench_kind::overlap);
  overlap->add_option("--repetitions", into.bench.repetitions, "rounds of each row, which take turns (5)")
      ->check(CLI::Range(1U, 1000U));
  auto* message = bench->add_subcommand("message", "actor messages between processes, beside baselines");
  add_common(*message, into, bench_kind::message);
  message->add_option("--repetitions", into.bench.repetitions, "runs of each system, which take turns (5)")
      ->check(CLI::Range(1U, 1000U));
  bench->footer(bench_footer); // last: the ones above would inherit it
  return bench;
}

std::string one_line(std::string_view text) {
  std::string line{text.substr(0, 500)};
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return line;
}

tool_line usage_error(std::string_view text) {
  return {.exit_code = exit_code_of(errc::bad_argument), .err = "troupe: " + one_line(text) + "\n"};
}

template <std::size_t N>
std::string joined(const std::array<std::string_view, N>& names) {
  std::string text;
  for (const auto name : names)
    text += (text.empty() ? "" : ", ") + std::string{name};
  return text;
}

// A name in the place of a command.
template <std::size_t N, std::size_t M>
std::optional<tool_line> check_name(const std::string& name, std::string_view prefix,
                                    const std::array<std::string_view, N>& there,
                                    const std::array<std::string_view, M>& later) {
  if (name.starts_with("-") || std::ranges::find(there, name) != there.end()) return std::nullopt;
  const auto shown = std::string{prefix} + name;
  const bool known = std::ranges::find(later, name) != later.end();
  const auto near = nearest_name(name, there);
  return usage_error(shown + (known ? ": not built yet" : ": unknown command") +
                     (known || near.empty() ? "" : " (did you mean " + std::string{near} + "?)") +
                     "; accepted: " + joined(there));
}

expected<std::optional<duration>> duration_of(const std::string& option, const std::string& text) {
  if (text.empty()) return std::optional<duration>{};
  const auto parsed_text = parse_duration(text);
  if (!parsed_text || *parsed_text <= duration{0})
    return error{errc::bad_argument,
                 option + " " + text + ": no duration; accepted: such as 250ms, 5s or 2min"};
  return std::optional{*parsed_text};
}

// Where PROGRAM stands in a `run` command line: behind our options, and behind `--` if that is there (TL-2).
std::size_t place_of_program(const std::vector<std::string>& arguments) {
  std::size_t at = 1;
  while (at < arguments.size() && arguments[at].starts_with("-")) {
    if (arguments[at] == "--") return at + 1;
    const bool takes_value = std::ranges::find(run_valued, arguments[at]) != run_valued.end();
    at += takes_value ? 2 : 1;
  }
  return std::min(at, arguments.size());
}

tool_line finish_run(parsed& from, const std::vector<std::string>& rest) {
  if (rest.empty())
    return usage_error("run: PROGRAM is missing; accepted: troupe run [-n N] PROGRAM [ARG...]");
  const auto grace = duration_of("run --grace", from.grace);
  if (!grace) return usage_error(grace.failure().text);
  auto& request = from.run.request;
  request.program = rest.front();
  request.arguments.assign(rest.begin() + 1, rest.end());
  request.copies = from.copies;
  request.grace = *grace;
  if (!from.as.empty()) request.as = from.as == "troupe" ? program_kind::troupe : program_kind::foreign;
  return {.command = std::move(from.run)};
}

tool_line finish_bench(parsed& from) {
  const auto detect_after = duration_of("bench recovery --detect-after", from.detect_after);
  if (!detect_after) return usage_error(detect_after.failure().text);
  if (*detect_after) from.bench.detect_after = **detect_after;
  if (auto valid = timeouts::derive(from.bench.detect_after).validate(); !valid)
    return usage_error("bench recovery --detect-after: " + valid.failure().text);
  return {.command = std::move(from.bench)};
}

tool_line finish_chaos(const parsed& from, const std::vector<std::string>& rest) {
  auto settings = chaos::check(from.chaos, rest);
  if (!settings) return usage_error("chaos: " + settings.failure().text);
  return {.command = std::move(*settings)};
}

// Takes the program and its arguments off the line: what stands behind `--` (chaos), or behind the options of
// `run` (TL-2).
std::vector<std::string> take_program(std::vector<std::string>& arguments) {
  if (arguments.empty() || (arguments[0] != "run" && arguments[0] != "chaos")) return {};
  auto place = std::ranges::find(arguments, "--");
  if (arguments[0] == "run")
    place = arguments.begin() + static_cast<std::ptrdiff_t>(place_of_program(arguments));
  else if (place != arguments.end())
    ++place;
  std::vector<std::string> rest{place, arguments.end()};
  arguments.erase(place, arguments.end());
  if (arguments.back() == "--") arguments.pop_back();
  return rest;
}

// The help of the subcommand asked about, not of the whole.
std::string help_of(const CLI::App& app, const std::string& path = "") {
  const auto chosen = app.get_subcommands();
  if (chosen.empty()) return app.help(path);
  return help_of(*chosen.front(), path + (path.empty() ? "" : " ") + app.get_name());
}

} // namespace

tool_line parse_tool_line(std::vector<std::string> arguments) {
  if (!arguments.empty()) {
    if (auto bad = check_name(arguments[0], "", built, planned)) return *bad;
    if (arguments[0] == "bench" && arguments.size() > 1) {
      if (auto bad = check_name(arguments[1], "bench ", benches_built, benches_planned)) return *bad;
    }
  }
  parsed into;
  CLI::App app{
      "Troupe's tool: starts programs, looks at checkpoints, measures, simulates, strikes, examines.",
      "troupe"};
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer("\nEach command explains itself: troupe COMMAND --help. All take --json: one object on standard "
             "output.");
  const auto* run = declare_run(app, into);
  const auto* ckpt = register_ckpt(app, into.ckpt);
  const auto* bench = declare_bench(app, into);
  const auto* sim = register_sim(app, into.sim);
  const auto* chaos = register_chaos(app, into.chaos);
  const auto* doctor = register_doctor(app, into.doctor);
  const auto* flight = register_flight(app, into.flight);
  const auto rest = take_program(arguments);
  std::ranges::reverse(arguments); // as CLI11 takes them
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return {.out = help_of(app)};
  } catch (const CLI::ParseError& bad) {
    return usage_error(std::string{bad.what()} + "; troupe --help explains");
  }
  if (run->parsed()) return finish_run(into, rest);
  if (bench->parsed()) return finish_bench(into);
  if (ckpt->parsed()) return {.command = into.ckpt};
  if (sim->parsed()) return {.command = into.sim};
  if (doctor->parsed()) return {.command = into.doctor};
  if (flight->parsed()) return {.command = into.flight};
  if (chaos->parsed()) return finish_chaos(into, rest);
  return usage_error("no command");
}

} // namespace troupe
