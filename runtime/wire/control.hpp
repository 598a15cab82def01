// Control messages: what the director and the workers of a training job tell each other.
//
// Plain values; `encode` and `decode` are the only way to and from bytes (Cap'n Proto, control.capnp).
// Everything that arrives is bounded and checked here, so that receivers see valid values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

namespace troupe::wire {

enum class state_source : unsigned char { keep, peer, checkpoint, fresh };
enum class checkpoint_outcome : unsigned char { taken, written, failed, rejected };

// --- worker -> director ---------------------------------------------------------------------------------

struct worker_ready {
  std::uint32_t slot{0};
  std::int64_t pid{0};
  std::string device;
};
// A sign of life, with the evidence of progress.
struct heartbeat {
  generation_id generation;
  std::uint64_t step_started{0};
  step_id step_applied;
  std::uint8_t doing{0};        // policy's `activity`
  duration doing_for{0};        // in it, when this was sent
  duration step_busy{0};        // own time of the last whole step
  std::uint64_t arrivals{0};    // meetings of the generation's collective that this rank has reached
  std::uint8_t call{0};         // seams' `collective_call`, of the newest call between ranks
  std::uint64_t call_number{0}; // of it in its group; 0: none yet
};
struct generation_prepared {
  generation_id generation;
  step_id step;
  state_source source{state_source::fresh};
};
struct prepare_failed {
  generation_id generation;
  error cause;
};
struct generation_stopped {
  generation_id generation;
  step_id applied;
  bool holds_state{false};
};
// `code` aborted: no actor, but the collective; the state is whole.
struct actor_failed {
  generation_id generation;
  std::string actor;
  std::uint64_t step{0};
  std::string text;
  bool healed_locally{false}; // the local supervisor restarted it and no state was lost
  std::int64_t fault_ns{0};   // when an injected fault struck, 0: unknown
  errc code{errc::actor_failed};
};
// The sum of a step was not finite: nobody has applied it, and the run has ended.
struct step_refused {
  generation_id generation;
  step_id step;     // that was being computed
  bool ours{false}; // this rank's contribution was not finite
};
// A fault of the plan is about to strike a worker whose black box the director cannot read. The next
// director_heartbeat says that it is known.
struct fault_struck {
  std::uint32_t fault{0}; // its place in the plan
};
// A member of the generation that this one cannot reach any more; the sums of the generation need it.
struct peer_unreachable {
  generation_id generation;
  incarnation_id who;
  std::string text;
};
// The first step applied in a generation.
struct first_step {
  generation_id generation;
  step_id step;
};
struct step_report {
  generation_id generation;
  step_id step;
  std::uint64_t steps_done{0}; // since the generation started
  double loss{0};              // mean over the global batch
  duration in_steps{0};        // since the generation started
  double first_loss{0};        // of the first step of the generation
  bool non_finite{false};
};
struct checkpoint_report {
  generation_id generation;
  checkpoint_outcome outcome{checkpoint_outcome::taken};
  step_id step;
  std::uint64_t bytes{0};
  duration stall{0};
  duration write{0};
  std::string text;
};
// A latency histogram (telemetry's) on its way: non-empty buckets, ascending.
struct histogram {
  std::vector<std::uint32_t> indices;
  std::vector<std::uint64_t> counts;
  duration max{0};
};
struct worker_finished {
  generation_id generation;
  step_id step;
  std::string weights_digest, state_digest;
  double loss{0};
  bool evaluated{false};
  double accuracy{0};
  histogram step_time, comm_wait, data_wait, stall;
  // Once warm; negative: not counted.
  double allocations_per_step{-1};      // on the device, the reader and the storage thread
  double control_allocations_per_s{-1}; // on the event loop: heartbeats, reports
  double page_faults_per_step{-1};      // of the whole process
  double cpu_ms_per_step{-1};           // of all its threads
};

// --- director -> worker ---------------------------------------------------------------------------------

struct member {
  incarnation_id incarnation;
  std::vector<std::byte> address;
  std::uint32_t slot{0};
};
struct prepare_generation {
  generation_id generation;
  rank_id rank;
  std::vector<member> members; // in rank order
  step_id step;
  state_source source{state_source::fresh};
  rank_id source_rank;
  std::string checkpoint;
  std::string collective;
  std::string fired_faults; // policy's `fired_faults`, encoded
};
struct start_generation {
  generation_id generation;
};
struct end_generation {
  generation_id generation;
  std::string cause;
};
struct stop_worker {
  std::string cause;
};
struct director_heartbeat {
  generation_id generation;
  std::string fired_faults; // as in prepare_generation; empty without a plan
};

// --- worker -> worker -----------------------------------------------------------------------------------

// Asks a replica for its state; the answer is a `state_offer` followed by a bulk transfer numbered with the
// generation, or a refusal.
struct state_request {
  generation_id generation;
  step_id step;
};
struct state_offer {
  generation_id generation;
  step_id step;
  std::uint64_t bytes{0};
  std::string digest;
};
struct state_refused {
  generation_id generation;
  std::string text;
};

using control =
    std::variant<worker_ready, heartbeat, generation_prepared, prepare_failed, generation_stopped,
                 actor_failed, first_step, step_report, checkpoint_report, worker_finished,
                 prepare_generation, start_generation, end_generation, stop_worker, director_heartbeat,
                 state_request, state_offer, state_refused, step_refused, fault_struck, peer_unreachable>;

[[nodiscard]] std::string_view name_of(const control& message);
[[nodiscard]] std::vector<std::byte> encode(const control& message);
// `bytes` is 8-byte aligned. errc::corrupt names what is wrong.
[[nodiscard]] expected<control> decode(std::span<const std::byte> bytes);

} // namespace troupe::wire
