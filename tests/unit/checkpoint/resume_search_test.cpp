// From which checkpoint a job goes on, and which it refuses because it was made under other settings.
#include "actors/director/resume_search.hpp"

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/units.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

// The settings that the checkpoints of the fixture were made with.
resume_search same_settings() {
  const auto made = test::metadata_at(0);
  return {.directory = test::checkpoint_directory,
          .layout = test::small_layout(),
          .choice = {},
          .seed = made.seed,
          .shards = made.shards,
          .global_batch = made.global_batch,
          .wire = made.wire,
          .top_k = made.top_k,
          .self = test::test_incarnation};
}

struct stored {
  test::memory_storage files;
  stored() { (void)files.create_directories(test::checkpoint_directory); }
  void write(std::uint64_t step, const std::function<void(checkpoint_metadata&)>& change = {}) {
    auto metadata = test::metadata_at(step);
    if (change) change(metadata);
    checkpoint_writer writer{files, test::small_settings()};
    REQUIRE(writer.write(metadata, std::as_bytes(std::span<const float>{test::small_state(4.0F)})));
  }
  std::string refusal(const resume_search& what) {
    const auto found = find_resume_point(files, what);
    REQUIRE_FALSE(found);
    CHECK(exit_code_of(found.failure().code) == 2);
    return found.failure().text;
  }
};

TEST_CASE("resume search: the newest of the same settings") {
  stored s;
  s.write(20);
  s.write(40);
  CHECK(find_resume_point(s.files, same_settings())->from.step == step_id{40});
}

TEST_CASE("resume search: another --wire or --top-k is refused, with both values and what is accepted") {
  stored s;
  s.write(20);
  auto other = same_settings();
  other.wire = "float32";
  const auto remedy = "another directory, or --resume none";
  CHECK(s.refusal(other) ==
        std::string{"--checkpoint-dir /job/ckpt: step 20 was written with --wire bfloat16, this run "
                    "says float32; accepted: the same --wire, "} +
            remedy);
  other.choice = {resume_choice::kind::version, step_id{20}};
  CHECK(s.refusal(other).find("--wire bfloat16") != std::string::npos);
  other.choice = {resume_choice::kind::nothing, {}};
  CHECK(find_resume_point(s.files, other)->from.step == step_id{0});

  s.write(40, [](checkpoint_metadata& metadata) { metadata.top_k = "0.05"; });
  other = same_settings();
  other.top_k = "0.1";
  CHECK(s.refusal(other) ==
        std::string{"--checkpoint-dir /job/ckpt: step 40 was written with --top-k 0.05, this run says "
                    "0.1; accepted: the same --top-k, "} +
            remedy);
  other.top_k = format_number(0.050);
  CHECK(find_resume_point(s.files, other)->from.step == step_id{40});
}

TEST_CASE("resume search: a checkpoint of an older build does not say how it was summed, and is taken") {
  stored s;
  s.write(20, [](checkpoint_metadata& metadata) { metadata.wire = metadata.top_k = ""; });
  auto any = same_settings();
  any.wire = "float16";
  CHECK(find_resume_point(s.files, any)->from.step == step_id{20});
}

} // namespace
} // namespace troupe
