#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "cli/troupe/tool_commands.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

const run_command& run_of(const tool_line& line) {
  INFO(line.err);
  REQUIRE(std::holds_alternative<run_command>(line.command));
  return std::get<run_command>(line.command);
}

TEST_CASE("tool: what follows PROGRAM is the program's, untouched (TL-2)") {
  const auto line =
      parse_tool_line({"run", "-n", "3", "--json", "prog", "-n", "5", "--json", "--", "-x", "run"});
  const auto& run = run_of(line);
  CHECK(run.json);
  CHECK(run.request.copies == 3U);
  CHECK(run.request.program == "prog");
  CHECK(run.request.arguments == std::vector<std::string>{"-n", "5", "--json", "--", "-x", "run"});
  CHECK_FALSE(run.request.as);
}

TEST_CASE("tool: a program may follow --") {
  const auto line = parse_tool_line({"run", "-n", "2", "--", "prog", "--steps", "5"});
  const auto& run = run_of(line);
  CHECK(run.request.program == "prog");
  CHECK(run.request.arguments == std::vector<std::string>{"--steps", "5"});
}

TEST_CASE("tool: run's options") {
  const auto line = parse_tool_line({"run", "--as", "troupe", "--grace", "250ms", "script.sh"});
  const auto& run = run_of(line);
  CHECK(run.request.as == program_kind::troupe);
  CHECK(run.request.grace == 250ms);
  CHECK_FALSE(run.request.copies);
}

TEST_CASE("tool: an error is one line that says what is accepted; exit code 2 (TL-1)") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {},
           {"nun"},
           {"--bogus"},
           {"run"},
           {"run", "--bogus", "prog"},
           {"run", "-n", "0", "prog"},
           {"run", "-n", "many", "prog"},
           {"run", "--as", "native", "prog"},
           {"run", "--grace", "soon", "prog"},
           {"doctor", "--transport", "udp"},
           {"doctor", "machine"},
           {"top"},
           {"bench"},
           {"bench", "speed"},
           {"bench", "data"},
           {"bench", "step", "--repetitions", "0"},
           {"bench", "allreduce", "--repetitions", "0"},
           {"bench", "overlap", "--repetitions", "0"},
           {"bench", "recovery", "--detect-after", "1ns"},
           {"ckpt"},
           {"ckpt", "ls"},
           {"ckpt", "ls", "a\nb", "c"},
       }) {
    const auto line = parse_tool_line(arguments);
    INFO((arguments.empty() ? "" : arguments.front()) << ": " << line.err);
    CHECK(line.exit_code == 2);
    CHECK(line.out.empty());
    CHECK(line.err.starts_with("troupe: "));
    CHECK(std::ranges::count(line.err, '\n') == 1);
    CHECK(line.err.ends_with('\n'));
    CHECK(std::holds_alternative<std::monostate>(line.command));
  }
  CHECK(parse_tool_line({"nun"}).err.find("did you mean run?") != std::string::npos);
  CHECK(parse_tool_line({"top"}).err.find("not built yet") != std::string::npos);
  CHECK(parse_tool_line({"bench", "data"}).err.find("bench data: not built yet") != std::string::npos);
}

TEST_CASE("tool: help teaches, on standard output, with exit code 0") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"--help"},
                                                                     {"run", "--help"},
                                                                     {"bench", "--help"},
                                                                     {"bench", "step", "--help"},
                                                                     {"ckpt", "ls", "--help"}}) {
    const auto line = parse_tool_line(arguments);
    CHECK(line.exit_code == 0);
    CHECK(line.err.empty());
    CHECK(line.out.size() > 100);
  }
  CHECK(parse_tool_line({"run", "--help"}).out.find("MASTER_PORT") != std::string::npos);
}

TEST_CASE("tool: bench, ckpt and flight commands") {
  const auto line =
      parse_tool_line({"bench", "recovery", "--json", "--repetitions", "4", "--detect-after", "300ms"});
  REQUIRE(std::holds_alternative<bench_command>(line.command));
  const auto& bench = std::get<bench_command>(line.command);
  CHECK(bench.what == bench_kind::recovery);
  CHECK(bench.json);
  CHECK_FALSE(bench.quick);
  CHECK(bench.repetitions == 4U);
  CHECK(bench.detect_after == 300ms);
  const auto sums = parse_tool_line({"bench", "allreduce", "--quick", "--repetitions", "3"});
  REQUIRE(std::holds_alternative<bench_command>(sums.command));
  CHECK(std::get<bench_command>(sums.command).what == bench_kind::allreduce);
  CHECK(std::get<bench_command>(sums.command).quick);
  CHECK(std::get<bench_command>(sums.command).repetitions == 3U);
  const auto ckpt = parse_tool_line({"ckpt", "verify", "dir", "100"});
  REQUIRE(std::holds_alternative<ckpt_options>(ckpt.command));
  CHECK(std::get<ckpt_options>(ckpt.command).action == ckpt_action::verify);
  CHECK(std::get<ckpt_options>(ckpt.command).step == 100U);
  const auto flight = parse_tool_line({"flight", "dumps", "--json"});
  REQUIRE(std::holds_alternative<flight_options>(flight.command));
  CHECK(std::get<flight_options>(flight.command).directory == "dumps");
  CHECK(std::get<flight_options>(flight.command).json);
  CHECK(parse_tool_line({"flight"}).exit_code == 2);
}

} // namespace
} // namespace troupe
