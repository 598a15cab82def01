#include "cli/sim/scenario.hpp"

#include "cli/sim/conversation.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t reference_seed = 1;
constexpr std::uint32_t keep_all = 1000;

std::string accepted_names() {
  std::string names;
  for (const auto& one : fault_scenarios())
    names += (names.empty() ? "" : ", ") + std::string{one.name};
  return names;
}

void add_lines(std::string& to, std::string_view title, const std::vector<std::string>& lines) {
  to += std::string{title} + ":\n";
  for (const auto& line : lines)
    to += "  " + line + "\n";
}

run_result converse_as_run(const run_request& request) {
  auto played = converse(request.seed);
  return {.request = request,
          .findings = std::move(played.findings),
          .struck = std::move(played.struck),
          .trace_digest = std::move(played.trace_digest),
          .events = played.events,
          .virtual_time = played.virtual_time,
          .log = std::move(played.log)};
}

} // namespace

std::string replay_command(const run_request& what) {
  const auto seed = std::to_string(what.seed);
  return "troupe sim --seeds " + seed + ".." + seed + " --hosts " + std::to_string(what.workers) +
         " --faults " + what.faults;
}

std::string run_result::report() const {
  std::string text = "replay: " + replay_command(request) + "\n";
  add_lines(text, "findings", findings);
  add_lines(text, "struck", struck);
  text += "events:\n" + event_lines;
  add_lines(text, "log", log);
  return text;
}

const reference& simulator::known(std::uint32_t workers, std::uint64_t checkpoint_every) {
  const auto [place, fresh] = known_.try_emplace({workers, checkpoint_every});
  if (!fresh) return place->second;
  auto what = base_;
  what.workers = workers;
  what.checkpoint_every = checkpoint_every;
  what.keep = keep_all;
  cluster quiet{reference_seed, what};
  quiet.start_director();
  (void)quiet.run({}); // what it lacks is found missing by the checkers
  place->second = reference_of(quiet);
  return place->second;
}

expected<run_result> simulator::run(const run_request& request) {
  const auto* scenario = find_scenario(request.faults);
  if (scenario == nullptr)
    return error{errc::bad_argument,
                 "--faults " + request.faults + ": unknown; accepted: " + accepted_names()};
  if (request.faults == conversation_scenario) return converse_as_run(request);
  const auto usual_events = known(request.workers).events;
  auto what = base_;
  what.workers = request.workers;
  strikes struck{request.faults, request.seed, usual_events, what};
  const auto& right = known(what.workers, what.checkpoint_every);
  cluster job{request.seed, what};
  struck.arm(job);
  job.start_director();
  (void)job.run([&struck](cluster& in) { struck(in); });

  const auto& world = job.machine().world;
  return run_result{.request = request,
                    .findings = check(job, right, *scenario),
                    .struck = struck.told(),
                    .trace_digest = world.trace_digest(),
                    .events = world.events(),
                    .virtual_time = world.now().time_since_epoch(),
                    .recomputed = job.samples().recomputed(),
                    .event_lines = job.events(),
                    .log = job.machine().log};
}

} // namespace troupe::sim
