#include <deque>
#include <memory>

#include <catch2/catch_test_macros.hpp>

#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/checkpoint/shard_file.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

using test::checkpoint_directory;

std::optional<verified_version> newest(storage& files) {
  const auto search = catalog{files, checkpoint_directory}.newest_verified(test::small_layout());
  return search ? search->found : std::nullopt;
}

// A directory with the given versions, all of it durable.
std::unique_ptr<test::memory_storage> directory_with(std::initializer_list<std::uint64_t> steps) {
  auto files = std::make_unique<test::memory_storage>();
  (void)files->create_directories(checkpoint_directory);
  for (const auto step : steps)
    REQUIRE(test::write_version(*files, step, static_cast<float>(step)));
  files->settle();
  files->restart_count();
  files->forget_changes();
  return files;
}

std::size_t calls_of_a_write(std::initializer_list<std::uint64_t> steps, std::uint64_t step) {
  auto files = directory_with(steps);
  REQUIRE(test::write_version(*files, step, 9.0F));
  return files->calls();
}

TEST_CASE("writer: a version appears under its name only when whole (CK-1)") {
  auto files = directory_with({});
  const auto written = test::write_version(*files, 200, 1.0F);
  REQUIRE(written);
  const std::string partial = "/job/ckpt/.partial-step-000000000200-00000000000000110000000000000022";
  CHECK(files->changes() == std::vector<std::string>{
                                "remove_all " + partial,
                                "create_directories " + partial,
                                "write_file " + partial + "/parameters-00001-of-00001.safetensors",
                                "write_file " + partial + "/optimizer-momentum-00001-of-00001.safetensors",
                                "write_file " + partial + "/manifest.json.tmp",
                                "rename " + partial + "/manifest.json.tmp -> " + partial + "/manifest.json",
                                "sync_directory " + partial,
                                "rename " + partial + " -> /job/ckpt/step-000000000200",
                                "sync_directory /job/ckpt",
                            });
  CHECK(written->path == "/job/ckpt/step-000000000200");
  CHECK(written->files == 2);
  std::uint64_t bytes = 0;
  const auto names = files->list(written->path);
  for (const auto& name : *names)
    bytes += *files->file_bytes(join_path(written->path, name));
  CHECK(written->bytes == bytes);
}

TEST_CASE("writer: replacing a version of an abandoned timeline keeps one until the other is safe (CK-2)") {
  auto files = directory_with({200});
  REQUIRE(test::write_version(*files, 200, 5.0F));
  const std::string retired = "/job/ckpt/.retired-step-000000000200-00000000000000110000000000000022";
  const auto& changes = files->changes();
  const std::string removed = "/job/ckpt/.removed-step-000000000200-00000000000000110000000000000022";
  REQUIRE(changes.size() == 14);
  CHECK(changes[7] == "rename /job/ckpt/step-000000000200 -> " + retired);
  CHECK(changes[8].starts_with("rename /job/ckpt/.partial"));
  CHECK(changes[9] == "sync_directory /job/ckpt");
  CHECK(changes[10] == "remove_all " + removed);
  CHECK(changes[11] == "rename " + retired + " -> " + removed);
  CHECK(changes[12] == "sync_directory /job/ckpt");
  CHECK(changes[13] == "remove_all " + removed);
  CHECK(test::load_state(*files, *newest(*files)) == test::small_state(5.0F));
  CHECK(files->list(checkpoint_directory)->size() == 1);
}

TEST_CASE("writer: a failure at any single call leaves a loadable version and no leftovers (CK-2)") {
  for (const auto code : {errc::storage_full, errc::storage_failed}) {
    for (const std::uint64_t step : {200U, 100U}) { // a new version, and a replacement
      const auto calls = calls_of_a_write({100}, step);
      for (std::size_t at = 0; at < calls; ++at) {
        INFO("step " << step << ", call " << at);
        auto files = directory_with({100});
        files->fail_at(at, code);
        const auto written = test::write_version(*files, step, 9.0F);
        if (!written) CHECK(written.failure().text.find("checkpoint of step") != std::string::npos);
        if (!written) CHECK(written.failure().code == code);
        const auto found = newest(*files);
        REQUIRE(found);
        const auto state = test::load_state(*files, *found);
        const bool is_new = state == test::small_state(9.0F);
        CHECK((is_new || state == test::small_state(100.0F)));
        if (written) CHECK(is_new);
        CHECK(found->path == join_path(checkpoint_directory, whole_name(found->step)));
        const auto names = files->list(checkpoint_directory);
        for (const auto& name : *names)
          CHECK_FALSE(name.starts_with(".partial"));
        // The next attempt works, whatever was left.
        REQUIRE(test::write_version(*files, step, 11.0F));
        CHECK(test::load_state(*files, *newest(*files)) == test::small_state(11.0F));
      }
    }
  }
}

// Retention may remove the version of a step while its former one is still there, and is taken for it then.
void check_retired(storage& files) {
  const auto names = files.list(checkpoint_directory);
  REQUIRE(names);
  for (const auto& name : *names) {
    const auto parsed = parse_version_name(name);
    if (!parsed || parsed->state != version_state::retired) continue;
    INFO(name);
    CHECK(catalog{files, checkpoint_directory}.verify({parsed->step, join_path(checkpoint_directory, name)}));
  }
}

// Runs a write of `step` that loses power at call `at`, keeps the pending changes in `mask`, and checks what
// is found. Returns how many changes were pending.
std::size_t crash_once(std::uint64_t step, std::size_t at, std::uint64_t mask) {
  auto files = directory_with({100});
  files->die_at(at);
  const auto written = test::write_version(*files, step, 9.0F);
  const auto pending = files->pending();
  files->crash([&](std::size_t index) { return ((mask >> index) & 1U) != 0; });

  INFO("step " << step << ", call " << at << ", kept changes " << mask << " of " << pending);
  const auto found = newest(*files);
  REQUIRE(found);
  const auto state = test::load_state(*files, *found);
  const bool is_new = state == test::small_state(9.0F);
  CHECK((is_new || state == test::small_state(100.0F)));
  CHECK(found->step == step_id{is_new ? step : 100});
  if (written) CHECK(is_new);
  check_retired(*files);

  // The next start cleans up and goes on.
  const catalog versions{*files, checkpoint_directory};
  REQUIRE(versions.clean_unfinished());
  CHECK(versions.list()->unfinished.empty());
  REQUIRE(newest(*files));
  CHECK(test::load_state(*files, *newest(*files)) == state);
  REQUIRE(test::write_version(*files, step, 11.0F));
  CHECK(test::load_state(*files, *newest(*files)) == test::small_state(11.0F));
  return pending;
}

TEST_CASE("writer: after a crash at any call, with any subset of unflushed changes, one loads (CK-1, CK-2)") {
  for (const std::uint64_t step : {200U, 100U}) {
    const auto calls = calls_of_a_write({100}, step);
    for (std::size_t at = 0; at <= calls; ++at) {
      const auto pending = crash_once(step, at, 0);
      REQUIRE(pending <= 12);
      for (std::uint64_t mask = 1; mask < (std::uint64_t{1} << pending); ++mask)
        crash_once(step, at, mask);
    }
  }
}

TEST_CASE("writer: bytes that storage did not keep are found before the version counts (CK-1)") {
  // Storage that loses the last byte of each shard file and says nothing.
  class forgetful final : public storage {
  public:
    explicit forgetful(storage& inner)
        : inner_{inner} {}
    expected<void> create_directories(const std::string& p) override { return inner_.create_directories(p); }
    expected<void> write_file(const std::string& p,
                              std::span<const std::span<const std::byte>> pieces) override {
      std::vector<std::span<const std::byte>> cut(pieces.begin(), pieces.end());
      if (p.ends_with(".safetensors")) cut.back() = cut.back().first(cut.back().size() - 1);
      return inner_.write_file(p, cut);
    }
    expected<std::vector<std::byte>> read_file(const std::string& p, std::uint64_t max) override {
      return inner_.read_file(p, max);
    }
    expected<void> read_at(const std::string& p, std::uint64_t at, std::span<std::byte> into) override {
      return inner_.read_at(p, at, into);
    }
    expected<std::uint64_t> file_bytes(const std::string& p) override { return inner_.file_bytes(p); }
    expected<std::vector<std::string>> list(const std::string& p) override { return inner_.list(p); }
    expected<void> rename(const std::string& a, const std::string& b) override { return inner_.rename(a, b); }
    expected<void> sync_directory(const std::string& p) override { return inner_.sync_directory(p); }
    expected<void> remove_all(const std::string& p) override { return inner_.remove_all(p); }

  private:
    storage& inner_;
  };
  auto files = directory_with({100});
  forgetful lossy{*files};
  const auto written = test::write_version(lossy, 200, 1.0F);
  REQUIRE_FALSE(written);
  CHECK(written.failure().code == errc::corrupt);
  CHECK(written.failure().text.find("read back") != std::string::npos);
  CHECK(newest(*files)->step == step_id{100});
  CHECK(files->list(checkpoint_directory)->size() == 1);
}

TEST_CASE("writer: a small limit splits files between tensors, and all of it loads") {
  auto files = directory_with({});
  auto settings = test::small_settings();
  settings.shard_bytes_max = 30; // smaller than the first tensor
  const auto written = test::write_version(*files, 200, 3.0F, settings);
  REQUIRE(written);
  CHECK(written->files == 4);
  CHECK(files->list(written->path)->at(3) == "parameters-00001-of-00002.safetensors");
  CHECK(test::load_state(*files, *newest(*files)) == test::small_state(3.0F));
}

TEST_CASE(
    "writer: retention runs after a version is safe, and its failure does not fail the version (CK-5)") {
  auto files = directory_with({100, 200, 300});
  auto settings = test::small_settings();
  settings.retention.keep_last = 2;
  const auto written = test::write_version(*files, 400, 4.0F, settings);
  REQUIRE(written);
  CHECK(written->removed == std::vector<step_id>{step_id{100}, step_id{200}});
  CHECK_FALSE(written->retention_failure);
  CHECK(catalog{*files, checkpoint_directory}.list()->versions.size() == 2);

  settings.retention.keep_last = 1;
  files->restart_count();
  auto probe = directory_with({});
  REQUIRE(test::write_version(*probe, 500, 5.0F));
  files->fail_at(probe->calls() - 1, errc::storage_failed); // the listing that retention starts with
  const auto again = test::write_version(*files, 500, 5.0F, settings);
  REQUIRE(again);
  CHECK(again->retention_failure);
  CHECK(newest(*files)->step == step_id{500});
}

TEST_CASE("writer: what could not be read back is not written") {
  auto files = directory_with({});
  auto metadata = test::metadata_at(1);
  metadata.optimizer = std::string(5000, 'x');
  const auto state = test::small_state(1.0F);
  checkpoint_writer writer{*files, test::small_settings()};
  CHECK(writer.write(metadata, std::as_bytes(std::span{state})).failure().code == errc::bad_argument);
  CHECK(writer.write(test::metadata_at(1), std::as_bytes(std::span{state}.first(10))).failure().code ==
        errc::bad_argument);
  CHECK(files->list(checkpoint_directory)->empty());
}

TEST_CASE("writer: the slot is free once the version is written, and the answer comes where asked (CK-3)") {
  struct queue final : executor {
    void post(task work) override { tasks.push_back(std::move(work)); }
    void run_one() {
      auto work = std::move(tasks.front());
      tasks.pop_front();
      work();
    }
    std::deque<task> tasks;
  };
  queue storage_thread;
  queue loop;
  auto files = directory_with({});
  snapshot_slots slots{1, test::small_layout().state_bytes()};
  auto writer = std::make_shared<checkpoint_writer>(*files, test::small_settings());
  auto slot = slots.try_take(step_id{10});
  REQUIRE(slot);
  const auto state = test::small_state(2.0F);
  std::memcpy(slot.bytes().data(), state.data(), slot.bytes().size());
  std::optional<expected<written_version>> answer;
  write_async(storage_thread, loop, writer, {std::move(slot), test::metadata_at(10)},
              [&](expected<written_version> result) { answer = std::move(result); });
  CHECK_FALSE(slots.try_take(step_id{11}));
  CHECK(slots.refused() == 1);
  CHECK(slots.last_refused() == step_id{11});
  storage_thread.run_one();
  CHECK_FALSE(answer);
  CHECK(slots.try_take(step_id{12}));
  loop.run_one();
  REQUIRE(answer);
  CHECK((*answer)->step == step_id{10});
  CHECK(test::load_state(*files, *newest(*files)) == state);
}

} // namespace
} // namespace troupe
