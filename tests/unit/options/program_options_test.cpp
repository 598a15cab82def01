#include "cli/options/program_options.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <catch2/catch_test_macros.hpp>

#include "cli/options/job_options.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

program_options options_of(job_settings defaults = {}) {
  program_options options{{.name = "train", .version = "0.1.0", .summary = "Trains."}, std::move(defaults)};
  options.add({.name = "data", .value_name = "DIR", .help = "the dataset", .fallback = "here"});
  options.add({.name = "hidden",
               .value_name = "N",
               .help = "width",
               .check = [](std::string_view v) -> std::optional<std::string> {
                 if (v == "256") return std::nullopt;
                 return "bad width; accepted: 256";
               }});
  options.read_files_with([](const std::string& path) -> expected<std::string> {
    if (path == "good.toml") return std::string{"[[fault]]\nspec = \"kill:worker=1@step=5\"\n"};
    if (path == "bad.toml") return std::string{"[[fault]]\nkind = \"kil\"\nat = \"step=5\"\n"};
    return error{errc::bad_argument, "cannot be read: No such file or directory"};
  });
  return options;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream in{text};
  return {std::istream_iterator<std::string>{in}, {}};
}

job_settings accepted(const std::string& text) {
  const auto parsed = options_of().parse(words(text));
  INFO(parsed.err);
  REQUIRE(parsed.settings);
  CHECK(parsed.out.empty());
  CHECK(parsed.err.empty());
  return *parsed.settings;
}

std::string refused_words(const std::vector<std::string>& arguments) {
  const auto parsed = options_of().parse(arguments);
  CHECK_FALSE(parsed.settings);
  CHECK(parsed.exit_code == 2);
  CHECK(parsed.out.empty());
  CHECK(std::ranges::count(parsed.err, '\n') == 1); // CL-1
  CHECK(parsed.err.ends_with("\n"));
  CHECK(parsed.err.starts_with("train: "));
  return parsed.err.substr(0, parsed.err.size() - 1);
}
std::string refused(const std::string& text) {
  return refused_words(words(text));
}

TEST_CASE("program options: nothing given is the contract's defaults") {
  auto expected_settings = job_settings{};
  expected_settings.extra = {{"data", "here"}};
  CHECK(accepted("") == expected_settings);
}

TEST_CASE("program options: every option reaches its setting") {
  const auto s = accepted("--workers 4 --workers-min 2 --workers-max 6 --device cuda:1 --steps 600 "
                          "--global-batch 256 --shards 16 --accumulate 2 --seed 18446744073709551615 "
                          "--checkpoint-dir ckpt --checkpoint-every 50 --keep 5 --resume 200 "
                          "--detect-after 250ms --fault kill:worker=1@step=40 --fault "
                          "stop:worker=2@step=60,for=5s --events e --summary s --metrics 127.0.0.1:9464 "
                          "--quiet --listen 0.0.0.0:4100 --token-file t --tls-cert c --tls-key k --tls-ca a "
                          "--data there --hidden 256");
  CHECK(s.workers == 4);
  CHECK(s.workers_min == 2);
  CHECK(s.workers_max == 6);
  CHECK(s.device == "cuda:1");
  CHECK(s.steps == 600);
  CHECK_FALSE(s.epochs);
  CHECK(s.global_batch == 256);
  CHECK(s.shards == 16);
  CHECK(s.accumulate == 2);
  CHECK(s.seed == 18446744073709551615ULL);
  CHECK(s.checkpoint_dir == "ckpt");
  CHECK(s.checkpoint_every == 50);
  CHECK(s.keep == 5);
  CHECK(s.resume.step == step_id{200});
  CHECK(s.detect_after == 250ms);
  REQUIRE(s.faults.size() == 2);
  CHECK(s.faults[1].lasting == 5s);
  CHECK(s.events == "e");
  CHECK(s.summary == "s");
  CHECK(s.metrics == "127.0.0.1:9464");
  CHECK(s.quiet);
  CHECK(s.listen == "0.0.0.0:4100");
  CHECK(s.token_file == "t");
  CHECK(s.tls_cert == "c");
  CHECK(s.tls_key == "k");
  CHECK(s.tls_ca == "a");
  CHECK(s.extra == std::map<std::string, std::string>{{"data", "there"}, {"hidden", "256"}});
  CHECK(accepted("--join h:1 --token-file t").join == "h:1");
  CHECK(accepted("--workers=3").workers == 3);
  CHECK(accepted("--resume none").resume.what == resume_choice::kind::nothing);
}

TEST_CASE("program options: the length that is given replaces the program's own") {
  job_settings defaults;
  defaults.epochs = 5;
  const auto options = options_of(defaults);
  CHECK(options.parse(std::vector<std::string>{}).settings->epochs == 5);
  const auto steps = options.parse(words("--steps 7"));
  REQUIRE(steps.settings);
  CHECK(steps.settings->steps == 7);
  CHECK_FALSE(steps.settings->epochs);
}

TEST_CASE("program options: a fault plan's faults join those of the command line") {
  const auto s = accepted("--fault kill:worker=0@step=3 --fault-plan good.toml");
  REQUIRE(s.faults.size() == 2);
  CHECK(to_text(s.faults[1]) == "kill:worker=1@step=5");
  CHECK(refused("--fault-plan bad.toml").starts_with("train: --fault-plan bad.toml:1: unknown kind 'kil'"));
  CHECK(refused("--fault-plan none.toml") == "train: --fault-plan none.toml: cannot be read: No such file or "
                                             "directory; accepted: a TOML file of [[fault]] tables");
}

TEST_CASE("program options: a plan that is no file is refused, whatever it is") {
  const program_options options{{.name = "train", .version = "0.1.0", .summary = ""}};
  for (const auto* path : {"/", "/dev/null/x", "/dev/zero"}) {
    const auto parsed = options.parse({"--fault-plan", path});
    CHECK(parsed.exit_code == 2);
    CHECK(parsed.err.starts_with("train: --fault-plan " + std::string{path} + ": cannot be read: "));
  }
}

TEST_CASE("program options: an unknown option is one line with the nearest name (CL-1)") {
  CHECK(refused("--worker 3") == "train: --worker: unknown option (did you mean --workers?); accepted: train "
                                 "--help lists the options");
  CHECK(refused("--frobnicate=7") ==
        "train: --frobnicate 7: unknown option; accepted: train --help lists the options");
  CHECK(refused("--steps 5 surplus").starts_with("train: surplus: unexpected argument"));
  CHECK(refused("-x").starts_with("train: -x: unknown option"));
  CHECK(refused("--dat x").find("--data") != std::string::npos);
}

TEST_CASE("program options: a bad value is one line with option, value and what is accepted (CL-1)") {
  CHECK(refused("--workers 0") == "train: --workers 0: too small; accepted: 1 to 1024");
  CHECK(refused("--workers -1") == "train: --workers -1: not a whole number; accepted: 1 to 1024");
  CHECK(refused("--workers two").starts_with("train: --workers two: not a whole number"));
  CHECK(refused("--workers 2x").starts_with("train: --workers 2x: not a whole number"));
  CHECK(refused("--workers 99999999999").starts_with("train: --workers 99999999999: too large"));
  CHECK(refused("--wire int8") == "train: --wire int8: no such format; accepted: float32, float16, bfloat16");
  CHECK(refused("--top-k much") == "train: --top-k much: not a number; accepted: 0, or 0.0001 to 0.5");
  CHECK(refused("--top-k 1").starts_with("train: --top-k 1: out of range; accepted: 0 (everything"));
  CHECK(refused("--bucket many") == "train: --bucket many: not a size; accepted: 0, or a size such as 4MiB");
  CHECK(refused("--bucket 2GiB").starts_with("train: --bucket 2GiB: out of range; accepted: 0, or 64"));
  CHECK(refused("--seed 1.5").starts_with("train: --seed 1.5: not a whole number"));
  CHECK(refused("--detect-after soon") ==
        "train: --detect-after soon: not a duration; accepted: a duration such as 250ms, 1s or 2min");
  CHECK(refused("--resume latest").starts_with("train: --resume latest: neither"));
  CHECK(refused("--global-batch 130") ==
        "train: --global-batch 130: not divisible into 8 shards; nearest: 128 "
        "or 136; accepted: multiples of 8");
  CHECK(refused("--fault kil:worker=1@step=4")
            .starts_with(
                "train: --fault kil:worker=1@step=4: unknown kind 'kil' (did you mean kill?); accepted:"));
  CHECK(refused("--fault clock-step:worker=1@step=4").find("no for=; accepted: for=DURATION") !=
        std::string::npos);
  CHECK(refused("--hidden 3") == "train: --hidden 3: bad width; accepted: 256");
}

TEST_CASE("program options: a missing, empty or repeated value is one line (CL-1)") {
  CHECK(refused("--workers") == "train: --workers: a value is missing; accepted: 1 to 1024");
  CHECK(refused("--workers --steps 5").starts_with("train: --workers: a value is missing"));
  CHECK(refused("--workers 2 --workers 3") == "train: --workers 3: given twice; accepted: once");
  CHECK(refused("--fault").starts_with("train: --fault: a value is missing; accepted: SPEC"));
  CHECK(refused("--data").starts_with("train: --data: a value is missing"));
  CHECK(refused("--quiet=yes") == "train: --quiet yes: takes no value; accepted: --quiet");
  CHECK(refused_words({"--events", ""}).starts_with("train: --events"));
  CHECK(refused_words({"--events="}).starts_with("train: --events"));
  CHECK(refused_words({"--fault", ""}).starts_with("train: --fault"));
}

TEST_CASE("program options: impossible combinations are one line (CL-1)") {
  CHECK(refused("--steps 5 --epochs 2").starts_with("train: --epochs 2: --steps 5 is given too"));
  CHECK(refused("--workers 9").find("more than the 8 of --shards") != std::string::npos);
  CHECK(refused("--keep 2").starts_with("train: --keep: there are no checkpoints without --checkpoint-dir"));
  CHECK(refused("--join h:1").find("--token-file") != std::string::npos);
}

TEST_CASE("program options: control characters and long values do not break the line (CL-1)") {
  CHECK(refused_words({"--workers", "a\nb\rc\x1b"}).starts_with("train: --workers a?b?c?: not"));
  CHECK(refused_words({"--workers", std::string(100'000, '9')}).size() < 400);
  CHECK(refused_words({"--x\ny"}).starts_with("train: --x?y"));
  CHECK(refused_words({std::string(100'000, 'x')}).size() < 400);
  CHECK(refused_words({"--fault", std::string(100'000, 'k') + "@step=1"}).size() < 1000);
}

TEST_CASE("program options: help lists every option in its group and teaches by example (CL-3)") {
  const auto parsed = options_of().parse({"--help"});
  CHECK_FALSE(parsed.settings);
  CHECK(parsed.exit_code == 0);
  CHECK(parsed.err.empty());
  for (const auto& option : job_options()) {
    INFO(option.name);
    CHECK(parsed.out.find("  " + std::string{option.name} + " ") != std::string::npos);
    CHECK(parsed.out.find(option.help) != std::string::npos);
    CHECK(parsed.out.find("\n" + std::string{option.group} + ":\n") != std::string::npos);
  }
  for (const auto* part :
       {"--data DIR", "the dataset (here)", "Examples:", "Exit codes:", "kill:worker=1@step=40"})
    CHECK(parsed.out.find(part) != std::string::npos);
  std::istringstream lines{parsed.out};
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 110);
  }
}

TEST_CASE("program options: version and time-outs are printed by the caller, not here") {
  CHECK(options_of().parse({"--version"}).out == "train 0.1.0\n");
  const auto table = options_of().parse(words("--detect-after 2s --show-timeouts"));
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("heartbeat_interval       200ms") != std::string::npos);
}

TEST_CASE("program options: an own option cannot take a name that exists") {
  auto options = options_of();
  CHECK_THROWS_AS(options.add({.name = "workers", .value_name = "N", .help = ""}), std::invalid_argument);
  CHECK_THROWS_AS(options.add({.name = "data", .value_name = "N", .help = ""}), std::invalid_argument);
}

} // namespace
} // namespace troupe
