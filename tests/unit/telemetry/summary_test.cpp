#include "runtime/telemetry/summary.hpp"

#include <map>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using json = nlohmann::ordered_json;

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items())
    names.push_back(name);
  return names;
}

// Files in memory; `full` refuses writes.
class memory_files final : public storage {
public:
  expected<void> create_directories(const std::string&) override { return {}; }
  expected<void> write_file(const std::string& path,
                            std::span<const std::span<const std::byte>> pieces) override {
    if (full) return error{errc::storage_full, "full"};
    auto& file = files[path];
    file.clear();
    for (const auto piece : pieces)
      file.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  }
  expected<std::vector<std::byte>> read_file(const std::string&, std::uint64_t) override { return error{}; }
  expected<void> read_at(const std::string&, std::uint64_t, std::span<std::byte>) override { return error{}; }
  expected<std::uint64_t> file_bytes(const std::string& path) override {
    if (path == "/dev/stdout") return error{errc::storage_failed, "not a file"};
    if (!files.contains(path)) return error{errc::not_found, path};
    return files[path].size();
  }
  expected<std::vector<std::string>> list(const std::string&) override { return error{}; }
  expected<void> rename(const std::string& from, const std::string& to) override {
    renames.push_back(from + " -> " + to);
    files[to] = files.extract(from).mapped();
    return {};
  }
  expected<void> sync_directory(const std::string& path) override {
    synced.push_back(path);
    return {};
  }
  expected<void> remove_all(const std::string&) override { return {}; }

  bool full{false};
  std::map<std::string, std::string> files;
  std::vector<std::string> renames;
  std::vector<std::string> synced;
};

TEST_CASE("summary: has the contract's fields, then what a step uses, also when nothing happened") {
  job_summary summary;
  summary.failures.emplace_back();
  const auto read = json::parse(to_json(summary));
  CHECK(keys(read) == std::vector<std::string>{"program",
                                               "version",
                                               "seed",
                                               "device",
                                               "shards",
                                               "workers_start",
                                               "workers_end",
                                               "generations",
                                               "steps_committed",
                                               "samples_committed",
                                               "loss_first",
                                               "loss_last",
                                               "accuracy",
                                               "weights_digest",
                                               "state_digest",
                                               "wall_s",
                                               "samples_per_s",
                                               "step_ms",
                                               "comm_wait_ms",
                                               "data_wait_ms",
                                               "checkpoint",
                                               "failures",
                                               "restarts",
                                               "survivors_kept",
                                               "goodput",
                                               "exit_reason",
                                               "allocations_per_step",
                                               "control_allocations_per_s",
                                               "page_faults_per_step",
                                               "cpu_ms_per_step"});
  CHECK(keys(read.at("step_ms")) == std::vector<std::string>{"p50", "p99"});
  CHECK(keys(read.at("checkpoint")) == std::vector<std::string>{"written", "failed", "bytes", "stall_ms"});
  CHECK(keys(read.at("checkpoint").at("stall_ms")) == std::vector<std::string>{"p50", "p99", "max"});
  CHECK(keys(read.at("failures").at(0)) == std::vector<std::string>{"kind", "cause", "rank", "step",
                                                                    "detected_ms", "recovered_ms",
                                                                    "steps_lost", "source"});
  CHECK(read.at("accuracy").is_null());
  CHECK(read.at("failures").at(0).at("recovered_ms").is_null());
}

TEST_CASE("summary: times are in the units that the names say") {
  job_summary summary;
  summary.wall = 2500ms;
  summary.step_time.record(8ms);
  summary.accuracy = 0.88;
  summary.failures.push_back({.kind = "process_died", .cause = "killed by SIGKILL \xff", .detected_ms = 4.0});
  const auto read = json::parse(to_json(summary));
  CHECK(read.at("wall_s") == 2.5);
  CHECK(read.at("step_ms").at("p50") == 8.0);
  CHECK(read.at("accuracy") == 0.88);
  CHECK(read.at("failures").at(0).at("detected_ms") == 4.0);
}

TEST_CASE("summary: is written beside its place and renamed; the directory is flushed") {
  memory_files files;
  files.files["out/s.json"] = "old";
  REQUIRE(write_summary(files, "out/s.json", {}));
  CHECK(json::parse(files.files["out/s.json"]).contains("program"));
  CHECK(files.renames == std::vector<std::string>{"out/s.json.partial -> out/s.json"});
  CHECK(files.synced == std::vector<std::string>{"out/"});
  REQUIRE(write_summary(files, "s.json", {}));
  CHECK(files.synced.back() == ".");
}

TEST_CASE("summary: a failed write leaves the old one; a device is written directly") {
  memory_files files;
  files.files["s.json"] = "old";
  files.full = true;
  CHECK(write_summary(files, "s.json", {}).failure().code == errc::storage_full);
  CHECK(files.files["s.json"] == "old");
  files.full = false;
  REQUIRE(write_summary(files, "/dev/stdout", {}));
  CHECK(files.files.contains("/dev/stdout"));
  CHECK(files.renames.empty());
}

} // namespace
} // namespace troupe
