#include <algorithm>
#include <functional>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "cli/doctor/doctor_checks.hpp"

namespace troupe::doctor {
namespace {

constexpr std::uint64_t mib = 1U << 20U;

doctor_facts healthy_machine() {
  doctor_facts facts;
  facts.ucx_resources = {"self/memory0", "tcp/lo", "sysv/memory", "posix/memory"};
  facts.loopback_up = true;
  facts.path = path_facts{{"tcp/lo"}, 20, 2e9};
  facts.reduce = {.workers = 2, .bytes = 4 * mib, .pairs = {{0, 1, 12e9}}, .trouble = reduce_trouble::none};
  facts.shm_total = 2048 * mib;
  facts.shm_free = 1024 * mib;
  facts.open_files_soft = 1024;
  facts.open_files_hard = 4096;
  facts.memory_total = 8192 * mib;
  facts.memory_available = 4096 * mib;
  facts.dataset_directory = "/data";
  facts.libraries = {{"UCX", "1.13", "1.13"}, {"CAF", "0.17.6", ""}};
  return facts;
}

// What one check says of the healthy machine after a change.
finding after(const std::string& check, const std::function<void(doctor_facts&)>& change) {
  auto facts = healthy_machine();
  change(facts);
  const auto found = examine(facts);
  const auto one = std::ranges::find(found, check, &finding::check);
  REQUIRE(one != found.end());
  if (one->what != verdict::ok) CHECK_FALSE(one->remedy.empty()); // DO-1
  return *one;
}

finding with_environment(const std::string& check, std::map<std::string, std::string> environment) {
  return after(check, [&](auto& f) { f.environment = std::move(environment); });
}

TEST_CASE("doctor: a healthy machine is ok in each check, and each speaks once (DO-2)") {
  const auto found = examine(healthy_machine());
  REQUIRE(found.size() == all_checks().size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(found[i].check << ": " << found[i].text);
    CHECK(found[i].check == all_checks()[i].name);
    CHECK(found[i].what == verdict::ok);
    CHECK(found[i].remedy.empty());
    CHECK_FALSE(found[i].text.empty());
  }
  CHECK(healthy(found));
}

TEST_CASE("doctor: GPUs are missed only where they are asked for") {
  const std::string missing = "no CUDA runtime (libcudart.so.13: no such file); install the CUDA runtime";
  const auto unasked = after("GPUs", [&](auto& f) { f.gpu.missing = missing; });
  CHECK(unasked.what == verdict::ok);
  CHECK(unasked.text == "not asked for: no CUDA runtime (libcudart.so.13: no such file)");
  const auto asked =
      after("GPUs", [&](auto& f) { f.gpu = {.asked = "cuda:0", .found = {}, .missing = missing}; });
  CHECK(asked.what == verdict::fail);
  CHECK(asked.text == "cuda:0: no CUDA runtime (libcudart.so.13: no such file)");
  CHECK(asked.remedy == "install the CUDA runtime, or use --device cpu");
  const auto there =
      after("GPUs", [](auto& f) { f.gpu = {.asked = "cuda:0", .found = "1 device", .missing = {}}; });
  CHECK(there.what == verdict::ok);
  CHECK(there.text == "1 device");
}

TEST_CASE("doctor: of a machine about which nothing is known, every finding has its remedy (DO-1)") {
  const auto found = examine({});
  CHECK_FALSE(healthy(found));
  for (const auto& one : found) {
    INFO(one.check);
    CHECK((one.what == verdict::ok) == one.remedy.empty());
  }
}

TEST_CASE("doctor: libraries") {
  CHECK(after("libraries", [](auto&) {}).text == "UCX 1.13, CAF 0.17.6");
  const auto other = after("libraries", [](auto& f) { f.libraries[0].loaded = "1.16"; });
  CHECK(other.what == verdict::warn);
  CHECK(other.text == "UCX 1.16 is loaded, 1.13 was built against");
}

TEST_CASE("doctor: loopback and transports") {
  const auto down = after("loopback device", [](auto& f) { f.loopback_up = false; });
  CHECK(down.what == verdict::fail);
  CHECK(down.remedy == "ip link set lo up");
  const auto transports = [](std::vector<std::string> names, const std::string& asked) {
    return after("UCX transports", [&](auto& f) {
      f.ucx_resources = std::move(names);
      f.transport = asked;
    });
  };
  CHECK(transports({}, "tcp").what == verdict::fail);
  CHECK(transports({"tcp/eth0"}, "tcp").what == verdict::fail);
  CHECK(transports({"tcp/lo"}, "tcp").what == verdict::ok);
  CHECK(transports({"tcp/lo"}, "shm").what == verdict::fail);
  CHECK(transports({"tcp/lo", "posix/memory"}, "shm").what == verdict::ok);
}

TEST_CASE("doctor: the lanes between two processes are those asked for") {
  const auto lanes = [](std::vector<std::string> chosen, const std::string& asked) {
    return after("lanes", [&](auto& f) {
      f.path->lanes = std::move(chosen);
      f.transport = asked;
    });
  };
  CHECK(lanes({"tcp/lo"}, "tcp").text == "between two processes: tcp/lo");
  CHECK(lanes({"sysv/memory", "tcp/lo"}, "tcp").what == verdict::fail);
  CHECK(lanes({"sysv/memory", "tcp/lo"}, "shm").what == verdict::ok);
  CHECK(lanes({"tcp/lo"}, "shm").what == verdict::warn);
  CHECK(lanes({}, "tcp").what == verdict::warn);
  const auto none = [](auto& f) {
    f.path.reset();
    f.path_failure = "no handshake";
  };
  CHECK(after("lanes", none).text == "two processes cannot talk: no handshake");
  for (const std::string check : {"lanes", "message time", "bandwidth"})
    CHECK(after(check, none).what == verdict::fail);
}

TEST_CASE("doctor: slow messages are a warning, with what was measured") {
  const auto slow = after("message time", [](auto& f) { f.path->half_rtt_us = 750; });
  CHECK(slow.what == verdict::warn);
  CHECK(slow.text == "8 B half round trip 750.0 us, more than the usual 500 us");
  const auto narrow = after("bandwidth", [](auto& f) { f.path->bytes_per_s = 50e6; });
  CHECK(narrow.what == verdict::warn);
  CHECK(narrow.text == "1 MiB transfers 0.05 GB/s, less than the usual 0.2 GB/s");
}

TEST_CASE("doctor: an all-reduce that was right tells each pair's bandwidth, and the slowest") {
  CHECK(after("all-reduce", [](auto&) {}).text ==
        "2 workers, sums right; GB/s between 0-1 12.00, slowest 0-1");
  const auto slow = after("all-reduce", [](auto& f) {
    f.reduce.workers = 3;
    f.reduce.pairs = {{0, 1, 12e9}, {0, 2, 0.25e9}, {1, 2, 6e9}};
  });
  CHECK(slow.what == verdict::warn);
  CHECK(slow.text == "3 workers, sums right; GB/s between 0-1 12.00, 0-2 0.25, 1-2 6.00, slowest 0-2, less "
                     "than the usual 0.50");
}

TEST_CASE("doctor: an all-reduce that failed names the worker, and what to do about that trouble") {
  const auto judge = [](reduce_trouble what, const std::string& text) {
    return after("all-reduce", [&](auto& f) {
      f.reduce.trouble = what;
      f.reduce.failure = text;
    });
  };
  const auto wrong = judge(reduce_trouble::wrong_value, "worker 1: 3 of 1048576 sums are wrong");
  CHECK(wrong.what == verdict::fail);
  CHECK(wrong.text == "no sum in shared memory: worker 1: 3 of 1048576 sums are wrong");
  CHECK(wrong.remedy.starts_with("do not train on this machine"));
  const auto refused = judge(reduce_trouble::memory, "shared segment: Operation not permitted");
  CHECK(refused.what == verdict::fail);
  CHECK(refused.remedy.starts_with("allow shared memory"));
  const auto late = judge(reduce_trouble::late, "worker 0: the other process does not answer");
  CHECK(late.what == verdict::fail);
  CHECK(late.remedy.starts_with("free the processors"));
  CHECK(judge(reduce_trouble::other, "").text == "no sum in shared memory: not tried");
}

TEST_CASE("doctor: UCX variables that would change lanes are named") {
  const auto judge = [](std::map<std::string, std::string> e) {
    return with_environment("UCX environment", std::move(e));
  };
  CHECK(judge({{"UCX_LOG_LEVEL", "info"}, {"UCX_MEM_EVENTS", "n"}, {"RANK", "0"}}).what == verdict::ok);
  const auto lanes = judge({{"UCX_TLS", "rc"}, {"UCX_NET_DEVICES", "mlx5_0"}});
  CHECK(lanes.what == verdict::warn);
  CHECK(lanes.text.starts_with("UCX_NET_DEVICES=mlx5_0, UCX_TLS=rc: "));
  const auto others = judge({{"UCX_TLS", "rc"}, {"UCX_RNDV_THRESH", "0"}});
  CHECK(others.what == verdict::warn);
  CHECK(others.text.starts_with("UCX_TLS=rc, UCX_RNDV_THRESH=0: "));
}

TEST_CASE("doctor: a loopback master address is wrong where there are several hosts") {
  const auto judge = [](std::map<std::string, std::string> e) {
    return with_environment("master address", std::move(e));
  };
  CHECK(judge({}).what == verdict::ok);
  CHECK(judge({{"MASTER_ADDR", "127.0.0.1"}}).what == verdict::ok);
  CHECK(judge({{"MASTER_ADDR", "10.0.0.1"}, {"SLURM_NNODES", "2"}}).what == verdict::ok);
  for (const std::string address : {"127.0.0.1", "localhost", "::1"}) {
    CHECK(judge({{"MASTER_ADDR", address}, {"SLURM_NNODES", "2"}}).what == verdict::warn);
    CHECK(judge({{"MASTER_ADDR", address}, {"WORLD_SIZE", "8"}, {"LOCAL_WORLD_SIZE", "4"}}).what ==
          verdict::warn);
    CHECK(judge({{"MASTER_ADDR", address}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "4"}}).what ==
          verdict::ok);
  }
}

TEST_CASE("doctor: ranks fit their world") {
  const auto judge = [](std::map<std::string, std::string> e) {
    return with_environment("ranks", std::move(e));
  };
  CHECK(judge({}).what == verdict::ok);
  CHECK(judge({{"RANK", "3"}, {"WORLD_SIZE", "4"}}).text == "rank 3 of 4");
  CHECK(judge({{"RANK", "4"}, {"WORLD_SIZE", "4"}}).text == "RANK=4 is not within WORLD_SIZE=4");
  CHECK(judge({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}).what == verdict::fail);
  CHECK(judge({{"RANK", "0"}}).text == "RANK is set, WORLD_SIZE is not");
  CHECK(judge({{"RANK", "one"}, {"WORLD_SIZE", "4"}}).text == "RANK=one is not a number");
  CHECK(judge({{"RANK", "0"}, {"WORLD_SIZE", ""}}).text == "WORLD_SIZE= is not a number");
  CHECK(judge({{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}).what ==
        verdict::fail);
  CHECK(judge({{"WORLD_SIZE", "4"}, {"SLURM_NTASKS", "8"}}).text == "WORLD_SIZE=4, but SLURM_NTASKS=8");
}

TEST_CASE("doctor: shared memory, open files, memory, dataset have a floor and a comfortable size") {
  const auto shm = [](std::uint64_t free) {
    return after("shared memory", [=](auto& f) { f.shm_free = free; }).what;
  };
  CHECK(shm(15 * mib) == verdict::fail);
  CHECK(shm(64 * mib) == verdict::warn);
  CHECK(shm(256 * mib) == verdict::ok);
  CHECK(after("shared memory", [](auto& f) { f.shm_total.reset(); }).what == verdict::fail);

  const auto files = [](std::uint64_t soft, std::uint64_t hard) {
    return after("open files", [=](auto& f) { f.open_files_soft = soft, f.open_files_hard = hard; });
  };
  CHECK(files(255, 255).what == verdict::fail);
  CHECK(files(256, 4096).what == verdict::warn);
  CHECK(files(256, 4096).remedy == "ulimit -n 1024");
  CHECK(files(256, 256).remedy.find("hard limit") != std::string::npos);

  const auto memory = [](std::uint64_t available, int overcommit) {
    return after("memory", [=](auto& f) { f.memory_available = available, f.overcommit = overcommit; }).what;
  };
  CHECK(memory(255 * mib, 0) == verdict::fail);
  CHECK(memory(512 * mib, 0) == verdict::warn);
  CHECK(memory(2048 * mib, 2) == verdict::warn);
  CHECK(memory(2048 * mib, 1) == verdict::ok);

  const auto data = after("dataset", [](auto& f) { f.dataset_missing = {"train-images-idx3-ubyte"}; });
  CHECK(data.what == verdict::warn);
  CHECK(data.text == "not in /data: train-images-idx3-ubyte");
}

TEST_CASE("doctor: the report is a line a check, or JSON") {
  const std::vector<finding> found{{"first", verdict::ok, "good", ""},
                                   {"the second", verdict::fail, "bad", "mend it"}};
  CHECK(to_text(found) == "ok    first       good\n"
                          "FAIL  the second  bad; remedy: mend it\n");
  const auto read = nlohmann::json::parse(to_json(found));
  CHECK(read.at("healthy") == false);
  CHECK(read.at("checks").at(0).at("remedy").is_null());
  CHECK(read.at("checks").at(1).at("verdict") == "FAIL");
  CHECK(read.at("checks").at(1).at("remedy") == "mend it");
}

} // namespace
} // namespace troupe::doctor
