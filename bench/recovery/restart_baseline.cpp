#include "bench/recovery/restart_baseline.hpp"

#include <csignal>
#include <filesystem>
#include <memory>

#include "runtime/base/units.hpp"

namespace troupe::bench {
namespace {

constexpr duration phase_limit = std::chrono::minutes{1};
constexpr std::uint64_t checkpoint_every = 50;
constexpr std::uint64_t steps_endless = 1'000'000;

std::vector<std::string> arguments(const recovery_scenario& what, const std::filesystem::path& checkpoints) {
  return {"--workers",
          std::to_string(what.workers),
          "--steps",
          std::to_string(steps_endless),
          "--checkpoint-dir",
          checkpoints.string(),
          "--resume",
          "auto",
          "--checkpoint-every",
          std::to_string(checkpoint_every),
          "--detect-after",
          format_duration(what.detect_after)};
}

error missed(const job_runner& runner, const std::string& what) {
  if (runner.interrupted() != 0) return {errc::aborted, "interrupted"};
  return {errc::timed_out, "restart: " + what + ": " + runner.last_line()};
}

// What a job said so far; shared with the reader of its events, which may outlive the call that started it.
struct heard {
  std::vector<std::int64_t> workers;
  bool checkpointed{false};
  bool going{false};
};

expected<std::int64_t> start(job_runner& runner, const recovery_scenario& what,
                             const std::shared_ptr<heard>& into) {
  return runner.start_with_events(
      beside_this_program(what.program).string(), arguments(what, runner.folder() / "restart"),
      [into](const nlohmann::json& event) {
        const auto& name = event.at("event");
        if (name == "worker_started") into->workers.push_back(event.at("pid"));
        if (name == "first_step_applied") into->going = true;
        if (name == "checkpoint_written" && event.value("step", 0U) >= 2 * checkpoint_every)
          into->checkpointed = true;
      });
}

} // namespace

expected<void> restart_once(job_runner& runner, const recovery_scenario& what, strike_samples& into) {
  std::filesystem::remove_all(runner.folder() / "restart");
  const auto before = std::make_shared<heard>();
  const auto first = start(runner, what, before);
  if (!first) return first.failure();
  const auto ended = [&runner](std::int64_t pid) { return !runner.runs(pid); };
  if (!runner.wait([&] { return before->checkpointed || ended(*first); }, phase_limit) ||
      !before->checkpointed)
    return missed(runner, "no checkpoint was written");

  const auto struck = runner.clock().now();
  runner.signal(*first, SIGKILL);
  for (const auto pid : before->workers)
    ::kill(static_cast<pid_t>(pid), SIGKILL);
  if (!runner.wait([&] { return ended(*first); }, phase_limit)) return missed(runner, "the job does not end");
  into.detected_ms.push_back(to_ms(runner.clock().now() - struck));
  runner.sweep();

  const auto after = std::make_shared<heard>();
  const auto second = start(runner, what, after);
  if (!second) return second.failure();
  if (!runner.wait([&] { return after->going || ended(*second); }, phase_limit) || !after->going)
    return missed(runner, "the job does not start again");
  into.recovered_ms.push_back(to_ms(runner.clock().now() - struck));
  into.survivors_kept = false;
  runner.signal(*second, SIGTERM);
  if (!runner.wait([&] { return ended(*second); }, phase_limit))
    return missed(runner, "the job does not end");
  return {};
}

} // namespace troupe::bench
