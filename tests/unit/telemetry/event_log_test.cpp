#include "runtime/telemetry/event_log.hpp"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/telemetry/manual_clock.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST_CASE("event log: a line holds what applies, in the contract's names and order") {
  manual_clock clock;
  memory_text_sink sink;
  event_log log{clock, sink};
  log.record({.kind = event_kind::job_started});
  clock.advance(1500ms);
  log.record({.kind = event_kind::failure_detected,
              .generation = generation_id{3},
              .step = step_id{200},
              .rank = rank_id{1},
              .pid = 123,
              .actor = "worker",
              .cause = "killed by SIGKILL"},
             {{"detected_ms", 4.5}, {"healed", true}, {"lost", std::uint64_t{1}}, {"kind", "process_died"}});
  CHECK(sink.text() == "{\"t\":0.0,\"event\":\"job_started\",\"generation\":0}\n"
                       "{\"t\":1.5,\"event\":\"failure_detected\",\"generation\":3,\"step\":200,\"rank\":1,"
                       "\"pid\":123,\"actor\":\"worker\",\"cause\":\"killed by SIGKILL\",\"detected_ms\":4.5,"
                       "\"healed\":true,\"lost\":1,\"kind\":\"process_died\"}\n");
  CHECK(log.recorded() == 2);
}

TEST_CASE("event log: a line is one JSON object whatever bytes a cause contains (EV-1)") {
  manual_clock clock;
  memory_text_sink sink;
  event_log log{clock, sink};
  for (const std::string_view cause :
       {"two\nlines \"quoted\" \\", "not \xff UTF-8", "\x01\x1f", "\xe2\x82\xac"}) {
    sink.clear();
    log.record({.kind = event_kind::nan, .cause = cause}, {{"loss", std::nan("")}});
    REQUIRE(sink.text().find('\n') == sink.text().size() - 1);
    const auto line = json::parse(sink.text());
    CHECK(line.at("loss").is_null());
    CHECK(line.at("event") == "nan");
  }
  CHECK(json::parse(sink.text()).at("cause") == "\xe2\x82\xac");
}

TEST_CASE("event log: every name of the contract is there, and first_step_applied, path_opened") {
  const std::string contract =
      "job_started worker_started worker_ready path_opened generation_started first_step_applied "
      "generation_ended "
      "failure_detected collective_aborted state_sent checkpoint_taken checkpoint_written "
      "checkpoint_rejected "
      "checkpoint_failed resumed resize_requested path_interrupted straggler hang health nan "
      "restart_budget_spent job_finished ";
  std::string ours;
  for (int i = 0; i <= static_cast<int>(event_kind::job_finished); ++i)
    ours += std::string{to_string(static_cast<event_kind>(i))} + " ";
  CHECK(ours == contract);
}

} // namespace
} // namespace troupe
