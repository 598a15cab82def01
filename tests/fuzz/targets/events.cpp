// Event files: what any program wrote with --events, read line by line.
#include "cli/chaos/event_file.hpp"

#include "tests/fuzz/one_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  const nameless_file file{given};
  for (const auto& event : chaos::read_events(file.path())) {
    require(event.is_object(), "what is no object is left out");
    for (const auto* field : {"event", "t", "rank", "pid", "cause", "step"}) {
      (void)chaos::word(event, field);
      (void)chaos::number(event, field);
    }
  }
}

std::vector<bytes> seeds() {
  return {bytes_of("{\"t\":0.1,\"event\":\"job_started\",\"generation\":0}\n"
                   "{\"t\":0.2,\"event\":\"worker_started\",\"generation\":0,\"rank\":1,\"pid\":42}\n"
                   "{\"t\":1e9,\"event\":\"failure_detected\",\"generation\":1,\"cause\":\"signal 9\"}\n"),
          bytes_of("[1]\n{}\nnull\n{\"event\":")};
}

} // namespace

const target events_target{"events", run, seeds, 3000};

} // namespace troupe::fuzz
