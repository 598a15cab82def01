// Settings of a job as text (JS-1, JS-2), and the handout that carries them to a joiner.
#include "actors/graph/handout.hpp"
#include "runtime/policy/job_settings.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  const auto choice = take_choice(given, 2);
  const auto text = text_of(given);
  if (choice == 0) {
    const auto settings = decode_job_settings(text);
    if (!settings || !settings->validate()) return;
    const auto again = decode_job_settings(encode(*settings));
    require(again && *again == *settings, "JS-1: valid settings survive encode and decode");
  } else {
    const auto handout = decode_handout(text);
    if (!handout) return;
    const auto again = decode_handout(encode(*handout));
    require(again && again->settings == handout->settings, "a handout is written and read alike");
  }
}

std::vector<bytes> seeds() {
  job_settings settings;
  settings.steps = 100;
  settings.checkpoint_dir = "ck";
  settings.extra["lr"] = "0.05";
  settings.faults.push_back(parse_fault("kill:worker=1@step=40").value());
  return {chosen(0, bytes_of(encode(job_settings{}))), chosen(0, bytes_of(encode(settings))),
          chosen(1, bytes_of(encode(job_handout{settings, "memory:1", "memory:2", 5})))};
}

} // namespace

const target settings_target{"settings", run, seeds, 2000};

} // namespace troupe::fuzz
