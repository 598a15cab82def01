#include <limits>
#include <sstream>

#include <CLI/CLI.hpp>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_command.hpp"
#include "runtime/checkpoint/bit_flip.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;
using test::checkpoint_directory;

struct result {
  int code{0};
  std::string out;
  std::string err;
  [[nodiscard]] json object() const { return json::parse(out); }
};

struct tool {
  test::memory_storage files;

  explicit tool(std::initializer_list<std::uint64_t> steps) {
    (void)files.create_directories(checkpoint_directory);
    for (const auto step : steps) {
      const auto state = test::small_state(static_cast<float>(step));
      auto metadata = test::metadata_at(step);
      metadata.written_unix_s = 1'000'000 + step;
      REQUIRE(
          checkpoint_writer{files, test::small_settings()}.write(metadata, std::as_bytes(std::span{state})));
    }
  }
  // As the `troupe` program would: parse, then run.
  result run(std::vector<std::string> arguments) {
    CLI::App app{"troupe"};
    ckpt_options options;
    options.now_unix_s = 1'000'500;
    register_ckpt(app, options);
    arguments.insert(arguments.begin(), "ckpt");
    std::reverse(arguments.begin(), arguments.end());
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& e) {
      return {2, "", e.what()};
    }
    std::ostringstream out;
    std::ostringstream err;
    const int code = run_ckpt(files, options, out, err);
    return {code, out.str(), err.str()};
  }
  std::string file(std::uint64_t step, std::string_view name) const {
    return join_path(join_path(checkpoint_directory, whole_name(step_id{step})), name);
  }
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("ckpt ls: one line a version, and what is wrong with it") {
  tool t{100, 200, 300, 400};
  (void)t.files.remove_all(t.file(300, manifest_name));
  REQUIRE(flip_bit(t.files, checkpoint_directory, "200"));
  (void)t.files.create_directories(join_path(
      checkpoint_directory, marked_name(version_state::partial, step_id{500}, test::test_incarnation)));
  const auto text = t.run({"ls", checkpoint_directory});
  CHECK(text.code == 0);
  INFO(text.out);
  CHECK(has(text.out, "STEP  GENERATION  FILES  BYTES   AGE  STATUS\n"));
  CHECK(has(text.out, " 100           2      2    "));
  CHECK(has(text.out, "6min  ok\n"));
  CHECK(has(text.out, "corrupt (/job/ckpt/step-000000000200/parameters-00001-of-00001.safetensors has the"));
  CHECK(has(text.out, "incomplete ("));
  CHECK(has(text.out, "unfinished: /job/ckpt/.partial-step-000000000500"));

  const auto object = t.run({"ls", checkpoint_directory, "--json"}).object();
  REQUIRE(object["versions"].size() == 4);
  CHECK(object["versions"][0]["status"] == "ok");
  CHECK(object["versions"][1]["status"] == "corrupt");
  CHECK(object["versions"][2]["status"] == "incomplete");
  CHECK(object["versions"][3]["step"] == 400);
  CHECK(object["versions"][3]["cause"].is_null());
  CHECK(object["unfinished"].size() == 1);
  const auto quick = t.run({"ls", checkpoint_directory, "--json", "--quick"}).object();
  CHECK(quick["versions"][1]["status"] == "unverified");
}

TEST_CASE("ckpt: an empty directory is not an error, a missing one is usage") {
  tool t{};
  CHECK(t.run({"ls", checkpoint_directory}).out == "no checkpoints\n");
  CHECK(t.run({"verify", checkpoint_directory}).code == 0);
  CHECK(t.run({"show", checkpoint_directory}).code == 2);
  for (const auto* command : {"ls", "show", "verify"}) {
    const auto missing = t.run({command, "/nowhere"});
    CHECK(missing.code == 2);
    CHECK(missing.err == "troupe ckpt: no such directory: /nowhere\n");
    CHECK(missing.out.empty());
  }
  CHECK(has(t.run({"ls", "/nowhere", "--json"}).object()["error"]["text"].get<std::string>(), "/nowhere"));
  CHECK(t.run({"ls"}).code == 2);
  CHECK(t.run({"prune", checkpoint_directory}).code == 2);
  CHECK(t.run({"show", checkpoint_directory, "12x"}).code == 2);
}

TEST_CASE("ckpt verify: each version a line, exit 1 where one is bad") {
  tool t{100, 200};
  const auto good = t.run({"verify", checkpoint_directory});
  CHECK(good.code == 0);
  CHECK(good.out == "ok  step 100  /job/ckpt/step-000000000100\nok  step 200  /job/ckpt/step-000000000200\n");
  REQUIRE(flip_bit(t.files, checkpoint_directory, "newest"));
  const auto bad = t.run({"verify", checkpoint_directory});
  CHECK(bad.code == 1);
  CHECK(has(bad.out, "corrupt  step 200  "));
  CHECK(t.run({"verify", checkpoint_directory, "100"}).code == 0);
  CHECK(t.run({"verify", checkpoint_directory, "150"}).code == 2);
  const auto object = t.run({"verify", checkpoint_directory, "200", "--json"});
  CHECK(object.code == 1);
  CHECK(object.object()["bad"] == 1);
}

TEST_CASE("ckpt show: what a version says about itself") {
  tool t{100, 200};
  const auto text = t.run({"show", checkpoint_directory});
  CHECK(text.code == 0);
  CHECK(has(text.out, "step        200\n"));
  CHECK(has(text.out, "status      ok\n"));
  CHECK(has(text.out, "momentum/fc1.weight    [3,5]"));
  const auto object = t.run({"show", checkpoint_directory, "100", "--json"}).object();
  CHECK(object["step"] == 100);
  CHECK(object["seed"] == 0xffffffffffffffffULL);
  CHECK(object["tensors"].size() == 6);
  CHECK(object["files"].size() == 2);
  test::put_text(t.files, t.file(200, "parameters-00001-of-00001.safetensors"), "x");
  CHECK(t.run({"show", checkpoint_directory, "200", "--json"}).code == 1);
  CHECK(t.run({"show", checkpoint_directory, "200", "--json"}).object()["tensors"].is_null());
}

TEST_CASE("ckpt diff: equal to the bit, or by how much not") {
  tool t{100};
  auto state = test::small_state(100.0F);
  const auto write = [&](std::uint64_t step) {
    REQUIRE(checkpoint_writer{t.files, test::small_settings()}.write(test::metadata_at(step),
                                                                     std::as_bytes(std::span{state})));
  };
  write(200);
  state[0] += 0.5F;
  state[3] -= 2.0F;
  state[48 + 32] = std::numeric_limits<float>::quiet_NaN();
  write(300);
  const auto same = t.run({"diff", checkpoint_directory, "100", "200"});
  CHECK(same.code == 0);
  CHECK(has(same.out, "6 of 6 tensors equal\n"));
  const auto other = t.run({"diff", checkpoint_directory, "200", "300"});
  CHECK(other.code == 1);
  INFO(other.out);
  CHECK(has(other.out, "parameters/fc1.weight  differs        2         2\n"));
  CHECK(has(other.out, "momentum/scale         differs      nan         1\n"));
  CHECK(has(other.out, "4 of 6 tensors equal\n"));
  const auto object = t.run({"diff", checkpoint_directory, "200", "300", "--json"}).object();
  CHECK(object["equal"] == false);
  CHECK(object["tensors"][0]["max_abs"] == 2.0);
  CHECK(object["tensors"][5]["max_abs"].is_null());
  CHECK(t.run({"diff", checkpoint_directory, "200"}).code == 2);
  CHECK(t.run({"diff", checkpoint_directory, "200", "999"}).code == 2);
}

TEST_CASE("ckpt diff: other tensors and other shapes are named") {
  tool t{100};
  auto settings = test::small_settings();
  settings.layout.tensors[0].shape = {5, 3};
  settings.layout.tensors[2].name = "gain";
  REQUIRE(test::write_version(t.files, 200, 100.0F, settings));
  const auto text = t.run({"diff", checkpoint_directory, "100", "200"});
  CHECK(text.code == 1);
  CHECK(has(text.out, "parameters/fc1.weight  shape "));
  CHECK(has(text.out, "parameters/scale       only in A"));
  CHECK(has(text.out, "parameters/gain        only in B"));
}

} // namespace
} // namespace troupe
