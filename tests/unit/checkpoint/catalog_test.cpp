#include <catch2/catch_test_macros.hpp>

#include "runtime/checkpoint/bit_flip.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

using test::checkpoint_directory;

struct world {
  test::memory_storage files;
  catalog versions{files, checkpoint_directory};
  state_layout layout{test::small_layout()};

  explicit world(std::initializer_list<std::uint64_t> steps) {
    (void)files.create_directories(checkpoint_directory);
    for (const auto step : steps)
      REQUIRE(test::write_version(files, step, static_cast<float>(step)));
  }
  std::string path(std::uint64_t step) const {
    return join_path(checkpoint_directory, whole_name(step_id{step}));
  }
};

TEST_CASE("catalog: a directory that does not exist holds no versions") {
  test::memory_storage files;
  const auto search = catalog{files, "/nowhere"}.newest_verified(test::small_layout());
  REQUIRE(search);
  CHECK_FALSE(search->found);
  CHECK(search->rejected.empty());
}

TEST_CASE("catalog: a directory that cannot be listed is an error") {
  test::memory_storage files;
  test::put_text(files, "/file", "x");
  CHECK(catalog{files, "/file"}.newest_verified(test::small_layout()).failure().code == errc::storage_failed);
}

TEST_CASE("catalog: the newest verified version is found among strangers") {
  world w{100, 300, 200};
  test::put_text(w.files, join_path(checkpoint_directory, "notes.txt"), "x");
  (void)w.files.create_directories(join_path(checkpoint_directory, "step-99999"));
  const auto search = w.versions.newest_verified(w.layout);
  REQUIRE(search);
  REQUIRE(search->found);
  CHECK(search->found->step == step_id{300});
  CHECK(search->found->manifest.metadata.sample_cursor == 38400);
  CHECK(search->rejected.empty());
}

TEST_CASE("catalog: damaged versions are passed over, each with its cause (CK-4)") {
  world w{100, 200, 300, 400, 500};
  REQUIRE(flip_bit(w.files, checkpoint_directory, "newest"));
  (void)w.files.remove_all(join_path(w.path(400), "optimizer-momentum-00001-of-00001.safetensors"));
  test::put_text(w.files, join_path(w.path(300), manifest_name), "{\"schema\": 1}");
  (void)w.files.remove_all(join_path(w.path(200), manifest_name));
  const auto search = w.versions.newest_verified(w.layout);
  REQUIRE(search);
  REQUIRE(search->found);
  CHECK(search->found->step == step_id{100});
  REQUIRE(search->rejected.size() == 4);
  CHECK(search->rejected[0].step == step_id{500});
  CHECK(search->rejected[0].cause.code == errc::corrupt);
  CHECK(search->rejected[0].cause.text.find("digest") != std::string::npos);
  CHECK(search->rejected[1].cause.text.find("is missing") != std::string::npos);
  CHECK(search->rejected[2].cause.code == errc::corrupt);
  CHECK(search->rejected[3].cause.code == errc::not_found);
  CHECK(search->rejected[3].path == w.path(200));
}

TEST_CASE("catalog: a truncated or grown file is found by its size (CK-4)") {
  world w{100, 200};
  const auto path = join_path(w.path(200), "parameters-00001-of-00001.safetensors");
  const auto whole = test::get_text(w.files, path);
  for (const auto& bad : {whole.substr(0, whole.size() - 1), whole + "x", std::string{}}) {
    test::put_text(w.files, path, bad);
    const auto search = w.versions.newest_verified(w.layout);
    REQUIRE(search->found);
    CHECK(search->found->step == step_id{100});
    CHECK(search->rejected[0].cause.text.find("bytes") != std::string::npos);
  }
}

TEST_CASE("catalog: nothing is newest by its name alone (CK-4)") {
  world w{100, 200};
  (void)w.files.rename(w.path(100), w.path(900));
  const auto search = w.versions.newest_verified(w.layout);
  REQUIRE(search->found);
  CHECK(search->found->step == step_id{200});
  CHECK(search->rejected[0].cause.text.find("manifest of step 100") != std::string::npos);
}

TEST_CASE("catalog: a version of another program ends the search, it is not passed over") {
  world w{100};
  auto other = test::small_settings();
  other.layout.program = "other";
  REQUIRE(test::write_version(w.files, 200, 2.0F, other));
  const auto search = w.versions.newest_verified(w.layout);
  REQUIRE(search);
  CHECK_FALSE(search->found);
  REQUIRE(search->refused);
  CHECK(search->refused->code == errc::wrong_program);
  CHECK(search->refused->text.find("'other'") != std::string::npos);
}

TEST_CASE("catalog: a chosen step is given verified, or the reason why not") {
  world w{100, 200};
  CHECK(w.versions.version_at(step_id{100}, w.layout)->step == step_id{100});
  CHECK(w.versions.version_at(step_id{150}, w.layout).failure().code == errc::not_found);
  REQUIRE(flip_bit(w.files, checkpoint_directory, "200"));
  CHECK(w.versions.version_at(step_id{200}, w.layout).failure().code == errc::corrupt);
  auto other = w.layout;
  other.program = "other";
  CHECK(w.versions.version_at(step_id{100}, other).failure().code == errc::wrong_program);
}

TEST_CASE("catalog: unfinished versions are not versions, and are cleaned on request only") {
  world w{100};
  const auto partial = join_path(checkpoint_directory,
                                 marked_name(version_state::partial, step_id{200}, test::test_incarnation));
  (void)w.files.create_directories(partial);
  test::put_text(w.files, join_path(partial, "parameters-00001-of-00001.safetensors"), "half");
  const auto listing = w.versions.list();
  CHECK(listing->versions.size() == 1);
  CHECK(listing->unfinished == std::vector<std::string>{partial});
  REQUIRE(w.versions.clean_unfinished());
  CHECK(w.versions.list()->unfinished.empty());
  CHECK(w.versions.newest_verified(w.layout)->found->step == step_id{100});
}

TEST_CASE("catalog: a version whose replacement never arrived counts, and cleaning puts it back (CK-2)") {
  world w{100};
  const auto retired = join_path(checkpoint_directory,
                                 marked_name(version_state::retired, step_id{100}, test::test_incarnation));
  (void)w.files.rename(w.path(100), retired);
  REQUIRE(w.versions.newest_verified(w.layout)->found);
  CHECK(w.versions.newest_verified(w.layout)->found->path == retired);
  REQUIRE(w.versions.clean_unfinished());
  CHECK(w.versions.newest_verified(w.layout)->found->path == w.path(100));
}

TEST_CASE("catalog: versions of an abandoned timeline are set aside, not deleted") {
  world w{100, 200, 300};
  const auto moved = w.versions.abandon_after(step_id{100}, test::test_incarnation);
  REQUIRE(moved);
  CHECK(moved->size() == 2);
  CHECK(w.versions.newest_verified(w.layout)->found->step == step_id{100});
  CHECK(w.versions.list()->abandoned == *moved);
  REQUIRE(w.versions.clean_unfinished());
  CHECK(w.versions.list()->abandoned.size() == 2);
}

TEST_CASE("bit flip: damages the version asked for, and only one bit of it") {
  world w{100, 200};
  const auto path = join_path(w.path(200), "parameters-00001-of-00001.safetensors");
  const auto before = test::get_text(w.files, path);
  const auto flipped = flip_bit(w.files, checkpoint_directory, "newest");
  REQUIRE(flipped);
  CHECK(flipped->path == path);
  auto after = test::get_text(w.files, path);
  const auto mask = static_cast<char>(1U << flipped->bit);
  CHECK(after[flipped->byte] == static_cast<char>(before[flipped->byte] ^ mask));
  after[flipped->byte] = before[flipped->byte];
  CHECK(after == before);
  CHECK(flip_bit(w.files, checkpoint_directory, "300").failure().code == errc::not_found);
  CHECK(flip_bit(w.files, checkpoint_directory, "oldest").failure().code == errc::bad_argument);
  CHECK(flip_bit(w.files, "/nowhere", "newest").failure().code == errc::not_found);
}

} // namespace
} // namespace troupe
