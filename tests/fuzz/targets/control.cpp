// Control messages: whatever decodes encodes, and decodes to the same kind again.
#include "runtime/wire/control.hpp"

#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  const auto copy = bytes_of(given);
  const auto read = wire::decode(copy);
  if (!read) {
    require(read.failure().code == errc::corrupt, "malformed is corrupt");
    return;
  }
  const auto again = wire::decode(wire::encode(*read));
  require(again && again->index() == read->index(), "decode(encode(m)) is of m's kind");
}

std::vector<bytes> seeds() {
  wire::prepare_generation prepare;
  prepare.generation = generation_id{7};
  prepare.rank = rank_id{1};
  prepare.members = {{incarnation_id{1, 2}, bytes_of("at"), 0}, {incarnation_id{3, 4}, {}, 1}};
  prepare.collective = "shm:1:2";
  prepare.fired_faults = "0@1";
  wire::worker_finished finished{generation_id{1}, step_id{9}, "aa", "bb"};
  finished.stall = {{1, 7}, {3, 4}, duration{99}};
  const std::vector<wire::control> all{
      wire::worker_ready{3, 42, "cpu"},
      wire::heartbeat{generation_id{1}, 5, step_id{4}},
      wire::generation_prepared{generation_id{1}, step_id{4}, wire::state_source::keep},
      wire::prepare_failed{generation_id{1}, {errc::corrupt, "digest"}},
      wire::generation_stopped{generation_id{1}, step_id{4}, true},
      wire::actor_failed{generation_id{1}, "worker", 4, "boom", false, 12, errc::out_of_memory},
      wire::first_step{generation_id{1}, step_id{5}},
      wire::step_report{generation_id{1}, step_id{5}, 5, 0.5, duration{7}, 2.3, false},
      wire::checkpoint_report{generation_id{1}, wire::checkpoint_outcome::written, step_id{5}, 10},
      finished,
      prepare,
      wire::start_generation{generation_id{2}},
      wire::end_generation{generation_id{2}, "killed"},
      wire::stop_worker{"done"},
      wire::director_heartbeat{generation_id{2}, "0/1/1"},
      wire::state_request{generation_id{2}, step_id{5}},
      wire::state_offer{generation_id{2}, step_id{5}, 1024, "cc"},
      wire::state_refused{generation_id{2}, "no"},
      wire::step_refused{generation_id{2}, step_id{6}, true},
      wire::fault_struck{3},
      wire::peer_unreachable{generation_id{2}, incarnation_id{4, 5}, "ended"}};
  std::vector<bytes> made;
  for (const auto& message : all)
    made.push_back(wire::encode(message));
  return made;
}

} // namespace

const target control_target{"control", run, seeds, 6000};

} // namespace troupe::fuzz
