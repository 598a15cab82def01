#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "cli/chaos/chaos_settings.hpp"
#include "cli/troupe/tool_commands.hpp"

namespace troupe::chaos {
namespace {

using namespace std::chrono_literals;

TEST_CASE("chaos settings: what follows -- is the program's, untouched (TL-2)") {
  const auto line = parse_tool_line({"chaos", "-n", "3", "--seed", "9", "--mtbf", "500ms", "--faults",
                                     "kill,stop", "--json", "--", "prog", "--seed", "5", "--", "-n"});
  INFO(line.err);
  REQUIRE(std::holds_alternative<chaos_settings>(line.command));
  const auto& settings = std::get<chaos_settings>(line.command);
  CHECK(settings.program == "prog");
  CHECK(settings.arguments == std::vector<std::string>{"--seed", "5", "--", "-n"});
  CHECK(settings.runs == 3);
  CHECK(settings.plan.seed == 9);
  CHECK(settings.plan.mtbf == 500ms);
  CHECK(settings.plan.kinds == std::vector<std::string>{"kill", "stop"});
  CHECK(settings.json);
}

TEST_CASE("chaos settings: an error is one line that says what is accepted; exit code 2 (TL-1)") {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"chaos"},
           {"chaos", "-n", "3"},
           {"chaos", "--"},
           {"chaos", "prog"},
           {"chaos", "-n", "0", "--", "prog"},
           {"chaos", "--mtbf", "soon", "--", "prog"},
           {"chaos", "--mtbf", "0s", "--", "prog"},
           {"chaos", "--time-limit", "-1s", "--", "prog"},
           {"chaos", "--faults", "kil", "--", "prog"},
           {"chaos", "--faults", "kill,,stop", "--", "prog"},
           {"chaos", "--", "prog", "--events", "here"},
           {"chaos", "--", "prog", "--checkpoint-dir=here"},
           {"chaos", "--", "prog", "--fault", "kill@step=1"},
       }) {
    const auto line = parse_tool_line(arguments);
    INFO(line.err);
    CHECK(line.exit_code == 2);
    CHECK(line.out.empty());
    CHECK(line.err.starts_with("troupe: "));
    CHECK(std::ranges::count(line.err, '\n') == 1);
    CHECK(std::holds_alternative<std::monostate>(line.command));
  }
  CHECK(parse_tool_line({"chaos", "--faults", "kil", "--", "p"}).err.find("did you mean kill?") !=
        std::string::npos);
  CHECK(parse_tool_line({"chaos", "--help"}).out.find("digests of the fault-free run") != std::string::npos);
}

TEST_CASE("chaos settings: a run's replay command draws the same plan") {
  chaos_options options{.runs = 40, .seed = 4, .mtbf = "1500ms", .faults = "stop,outside-kill"};
  const auto settings = check(options, {"build/my prog", "--steps", "10"});
  REQUIRE(settings);
  CHECK(replay_command(*settings, 17) ==
        "troupe chaos -n 1 --first-run 17 --seed 4 --mtbf 1.5s --faults stop,outside-kill -- "
        "'build/my prog' --steps 10");
}

} // namespace
} // namespace troupe::chaos
