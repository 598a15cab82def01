// The checkpoint room on the real file system, with a full one and a read-only one where this process may
// mount.
#include <sched.h>
#include <sys/mount.h>

#include <catch2/catch_test_macros.hpp>

#include "runtime/checkpoint/bit_flip.hpp"
#include "runtime/checkpoint/directory_guard.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "runtime/host/posix_storage.hpp"
#include "tests/unit/checkpoint/fixture.hpp"
#include "tests/unit/host/temporary_directory.hpp"

namespace troupe {
namespace {

writer_settings settings_for(const std::string& directory) {
  auto settings = test::small_settings();
  settings.directory = directory;
  return settings;
}

// A small tmpfs over a directory, seen by this process only; `mounted` is false where that is not allowed.
class private_mount {
public:
  private_mount(std::string path, unsigned long flags, const char* options)
      : path_{std::move(path)} {
    if (::unshare(CLONE_NEWNS) != 0) return;
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return;
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", flags, options) == 0;
  }
  ~private_mount() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  private_mount(const private_mount&) = delete;
  private_mount& operator=(const private_mount&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }

private:
  std::string path_;
  bool mounted_{false};
};

TEST_CASE("real files: write, find, damage, fall back, write again, keep the last K (CK-2, CK-4, CK-5)") {
  const temporary_directory place;
  posix_storage files;
  const auto directory = place / "runs/a/ckpt";
  REQUIRE(prepare_checkpoint_directory(files, directory, test::test_incarnation));
  auto settings = settings_for(directory);
  settings.retention.keep_last = 2;
  for (const std::uint64_t step : {100U, 200U, 300U})
    REQUIRE(test::write_version(files, step, static_cast<float>(step), settings));
  const catalog versions{files, directory};
  CHECK(*files.list(directory) == std::vector<std::string>{"step-000000000200", "step-000000000300"});

  REQUIRE(flip_bit(files, directory, "newest"));
  const auto search = versions.newest_verified(settings.layout);
  REQUIRE(search);
  REQUIRE(search->found);
  CHECK(search->found->step == step_id{200});
  CHECK(search->rejected.size() == 1);
  CHECK(test::load_state(files, *search->found) == test::small_state(200.0F));

  REQUIRE(test::write_version(files, 300, 7.0F, settings)); // over the damaged one
  const auto again = versions.newest_verified(settings.layout);
  CHECK(again->found->step == step_id{300});
  CHECK(test::load_state(files, *again->found) == test::small_state(7.0F));
  CHECK(files.list(directory)->size() == 2);
}

TEST_CASE("real files: the directory guard names what is in the way, also for root") {
  const temporary_directory place;
  posix_storage files;
  test::put_text(files, place / "file", "x");
  for (const auto& path :
       {place / "file", place / "file/below", std::string{"/proc/checkpoints"}, std::string(5000, 'x')}) {
    const auto result = prepare_checkpoint_directory(files, path, test::test_incarnation);
    REQUIRE_FALSE(result);
    CHECK(exit_code_of(result.failure().code) == 2);
    CHECK(result.failure().text.find(path) != std::string::npos);
  }
  CHECK(catalog{files, place / "file"}.list().failure().code == errc::storage_failed);
}

TEST_CASE("real files: a full file system fails the write, and the version before stays (CK-2)") {
  const temporary_directory place;
  const private_mount small{place.path(), 0, "size=96k"};
  if (!small.mounted()) SKIP("may not mount here");
  posix_storage files;
  auto settings = settings_for(place.path());
  settings.layout.tensors[2].shape = {4096}; // 16 KiB, twice
  settings.layout.parameter_elements = 8192;
  std::vector<float> state(2 * 8192, 0.5F);
  checkpoint_writer writer{files, settings};
  std::uint64_t step = 0;
  std::optional<error> failed;
  while (!failed && step < 10) {
    const auto written = writer.write(test::metadata_at(++step), std::as_bytes(std::span{state}));
    if (!written) failed = written.failure();
  }
  REQUIRE(failed);
  CHECK(failed->code == errc::storage_full);
  INFO(failed->text);
  CHECK(failed->text.find("No space left on device") != std::string::npos);
  const auto found = catalog{files, place.path()}.newest_verified(settings.layout);
  REQUIRE(found->found);
  CHECK(found->found->step == step_id{step - 1});
  CHECK(catalog{files, place.path()}.list()->unfinished.empty());
}

TEST_CASE("real files: a read-only file system is found at start, also by root") {
  const temporary_directory place;
  const private_mount fixed{place.path(), MS_RDONLY, ""};
  if (!fixed.mounted()) SKIP("may not mount here");
  posix_storage files;
  for (const auto& path : {place.path(), place / "below"}) {
    const auto result = prepare_checkpoint_directory(files, path, test::test_incarnation);
    REQUIRE_FALSE(result);
    CHECK(exit_code_of(result.failure().code) == 2);
    CHECK(result.failure().text.find("Read-only file system") != std::string::npos);
  }
}

} // namespace
} // namespace troupe
