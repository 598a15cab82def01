#include "runtime/wire/control.hpp"

#include <array>
#include <cstring>

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "runtime/base/limits.hpp"
#include "runtime/seams/call_descriptor.hpp"
#include "runtime/wire/control.capnp.h"

namespace troupe::wire {
namespace {

constexpr std::size_t address_bytes_max = 64 * 1024;
constexpr std::uint8_t activities = 6;
constexpr unsigned buckets_max = 4096;
constexpr std::size_t fired_bytes_max = 32 * 1024; // some thousand strikes
constexpr std::size_t text_bytes_max = limits::error_text_bytes_max;

// --- encoding -------------------------------------------------------------------------------------------

kj::StringPtr bounded(const std::string& text, std::string& scratch) {
  if (text.size() <= text_bytes_max) return {text.c_str(), text.size()};
  scratch = text.substr(0, text_bytes_max);
  return {scratch.c_str(), scratch.size()};
}

void put(schema::Histogram::Builder out, const histogram& in) {
  const auto size = static_cast<unsigned>(in.indices.size());
  auto indices = out.initIndices(size);
  auto counts = out.initCounts(size);
  for (unsigned i = 0; i < size; ++i) {
    indices.set(i, in.indices[i]);
    counts.set(i, in.counts[i]);
  }
  out.setMaxNs(in.max.count());
}

struct writer {
  schema::Control::Builder out;
  std::string scratch;

  void operator()(const worker_ready& m) {
    auto body = out.initWorkerReady();
    body.setSlot(m.slot);
    body.setPid(m.pid);
    body.setDevice(bounded(m.device, scratch));
  }
  void operator()(const heartbeat& m) {
    auto body = out.initHeartbeat();
    body.setGeneration(m.generation.value());
    body.setStepStarted(m.step_started);
    body.setStepApplied(m.step_applied.value());
    body.setDoing(m.doing);
    body.setDoingForNs(m.doing_for.count());
    body.setStepBusyNs(m.step_busy.count());
    body.setArrivals(m.arrivals);
    body.setCall(m.call);
    body.setCallNumber(m.call_number);
  }
  void operator()(const generation_prepared& m) {
    auto body = out.initGenerationPrepared();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
    body.setSource(static_cast<schema::StateSource>(m.source));
  }
  void operator()(const prepare_failed& m) {
    auto body = out.initPrepareFailed();
    body.setGeneration(m.generation.value());
    body.setCode(static_cast<std::uint8_t>(m.cause.code));
    body.setText(bounded(m.cause.text, scratch));
  }
  void operator()(const generation_stopped& m) {
    auto body = out.initGenerationStopped();
    body.setGeneration(m.generation.value());
    body.setApplied(m.applied.value());
    body.setHoldsState(m.holds_state);
  }
  void operator()(const actor_failed& m) {
    auto body = out.initActorFailed();
    body.setGeneration(m.generation.value());
    body.setActor(bounded(m.actor, scratch));
    body.setStep(m.step);
    body.setText(bounded(m.text, scratch));
    body.setHealedLocally(m.healed_locally);
    body.setFaultNs(m.fault_ns);
    body.setCode(static_cast<std::uint8_t>(m.code));
  }
  void operator()(const step_refused& m) {
    auto body = out.initStepRefused();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
    body.setOurs(m.ours);
  }
  void operator()(const fault_struck& m) { out.initFaultStruck().setFault(m.fault); }
  void operator()(const peer_unreachable& m) {
    auto body = out.initPeerUnreachable();
    body.setGeneration(m.generation.value());
    auto who = body.initWho();
    who.setHigh(m.who.high());
    who.setLow(m.who.low());
    body.setText(bounded(m.text, scratch));
  }
  void operator()(const first_step& m) {
    auto body = out.initFirstStep();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
  }
  void operator()(const step_report& m) {
    auto body = out.initStepReport();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
    body.setStepsDone(m.steps_done);
    body.setLoss(m.loss);
    body.setInStepsNs(m.in_steps.count());
    body.setFirstLoss(m.first_loss);
    body.setNonFinite(m.non_finite);
  }
  void operator()(const checkpoint_report& m) {
    auto body = out.initCheckpointReport();
    body.setGeneration(m.generation.value());
    body.setOutcome(static_cast<schema::CheckpointOutcome>(m.outcome));
    body.setStep(m.step.value());
    body.setBytes(m.bytes);
    body.setStallNs(m.stall.count());
    body.setWriteNs(m.write.count());
    body.setText(bounded(m.text, scratch));
  }
  void operator()(const worker_finished& m) {
    auto body = out.initWorkerFinished();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
    body.setWeightsDigest(m.weights_digest);
    body.setStateDigest(m.state_digest);
    body.setLoss(m.loss);
    body.setEvaluated(m.evaluated);
    body.setAccuracy(m.accuracy);
    put(body.initStepTime(), m.step_time);
    put(body.initCommWait(), m.comm_wait);
    put(body.initDataWait(), m.data_wait);
    put(body.initStall(), m.stall);
    body.setAllocationsPerStep(m.allocations_per_step);
    body.setControlAllocationsPerS(m.control_allocations_per_s);
    body.setPageFaultsPerStep(m.page_faults_per_step);
    body.setCpuMsPerStep(m.cpu_ms_per_step);
  }
  void operator()(const prepare_generation& m) {
    auto body = out.initPrepareGeneration();
    body.setGeneration(m.generation.value());
    body.setRank(m.rank.value());
    auto members = body.initMembers(static_cast<unsigned>(m.members.size()));
    for (unsigned i = 0; i < members.size(); ++i) {
      const auto& from = m.members[i];
      auto to = members[i];
      auto id = to.initIncarnation();
      id.setHigh(from.incarnation.high());
      id.setLow(from.incarnation.low());
      to.setAddress({reinterpret_cast<const kj::byte*>(from.address.data()), from.address.size()});
      to.setSlot(from.slot);
    }
    body.setStep(m.step.value());
    body.setSource(static_cast<schema::StateSource>(m.source));
    body.setSourceRank(m.source_rank.value());
    body.setCheckpoint(m.checkpoint);
    body.setCollective(m.collective);
    body.setFiredFaults(m.fired_faults);
  }
  void operator()(const start_generation& m) {
    out.initStartGeneration().setGeneration(m.generation.value());
  }
  void operator()(const end_generation& m) {
    auto body = out.initEndGeneration();
    body.setGeneration(m.generation.value());
    body.setCause(bounded(m.cause, scratch));
  }
  void operator()(const stop_worker& m) { out.initStopWorker().setCause(bounded(m.cause, scratch)); }
  void operator()(const director_heartbeat& m) {
    auto body = out.initDirectorHeartbeat();
    body.setGeneration(m.generation.value());
    body.setFiredFaults(m.fired_faults);
  }
  void operator()(const state_request& m) {
    auto body = out.initStateRequest();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
  }
  void operator()(const state_offer& m) {
    auto body = out.initStateOffer();
    body.setGeneration(m.generation.value());
    body.setStep(m.step.value());
    body.setBytes(m.bytes);
    body.setDigest(m.digest);
  }
  void operator()(const state_refused& m) {
    auto body = out.initStateRefused();
    body.setGeneration(m.generation.value());
    body.setText(bounded(m.text, scratch));
  }
};

// --- decoding -------------------------------------------------------------------------------------------

struct malformed {
  const char* what;
};

std::string text_of(capnp::Text::Reader in, std::size_t bytes_max = text_bytes_max) {
  if (in.size() > bytes_max) throw malformed{"a text is too long"};
  return {in.begin(), in.size()};
}

template <class Enum, class Wire>
Enum enum_of(Wire in, unsigned count) {
  if (static_cast<unsigned>(in) >= count) throw malformed{"an enumeration is out of range"};
  return static_cast<Enum>(in);
}

histogram histogram_of(schema::Histogram::Reader in) {
  const auto indices = in.getIndices();
  const auto counts = in.getCounts();
  if (indices.size() != counts.size() || indices.size() > buckets_max)
    throw malformed{"a histogram is malformed"};
  histogram out;
  for (unsigned i = 0; i < indices.size(); ++i) {
    out.indices.push_back(indices[i]);
    out.counts.push_back(counts[i]);
  }
  out.max = duration{in.getMaxNs()};
  return out;
}

prepare_generation read(schema::PrepareGeneration::Reader in) {
  prepare_generation m;
  m.generation = generation_id{in.getGeneration()};
  m.rank = rank_id{in.getRank()};
  const auto members = in.getMembers();
  if (members.size() == 0 || members.size() > limits::workers_max)
    throw malformed{"the member count is out of range"};
  for (const auto from : members) {
    const auto address = from.getAddress();
    if (address.size() > address_bytes_max) throw malformed{"an address is too long"};
    const auto* bytes = reinterpret_cast<const std::byte*>(address.begin());
    m.members.push_back({incarnation_id{from.getIncarnation().getHigh(), from.getIncarnation().getLow()},
                         {bytes, bytes + address.size()},
                         from.getSlot()});
  }
  m.step = step_id{in.getStep()};
  m.source = enum_of<state_source>(in.getSource(), 4);
  m.source_rank = rank_id{in.getSourceRank()};
  if (in.getRank() >= members.size() || in.getSourceRank() >= members.size())
    throw malformed{"a rank is out of range"};
  m.checkpoint = text_of(in.getCheckpoint());
  m.collective = text_of(in.getCollective());
  m.fired_faults = text_of(in.getFiredFaults(), fired_bytes_max);
  return m;
}

worker_finished read(schema::WorkerFinished::Reader in) {
  worker_finished m;
  m.generation = generation_id{in.getGeneration()};
  m.step = step_id{in.getStep()};
  m.weights_digest = text_of(in.getWeightsDigest(), 64);
  m.state_digest = text_of(in.getStateDigest(), 64);
  m.loss = in.getLoss();
  m.evaluated = in.getEvaluated();
  m.accuracy = in.getAccuracy();
  m.step_time = histogram_of(in.getStepTime());
  m.comm_wait = histogram_of(in.getCommWait());
  m.data_wait = histogram_of(in.getDataWait());
  m.stall = histogram_of(in.getStall());
  m.allocations_per_step = in.getAllocationsPerStep();
  m.control_allocations_per_s = in.getControlAllocationsPerS();
  m.page_faults_per_step = in.getPageFaultsPerStep();
  m.cpu_ms_per_step = in.getCpuMsPerStep();
  return m;
}

checkpoint_report read(schema::CheckpointReport::Reader in) {
  return {generation_id{in.getGeneration()},
          enum_of<checkpoint_outcome>(in.getOutcome(), 4),
          step_id{in.getStep()},
          in.getBytes(),
          duration{in.getStallNs()},
          duration{in.getWriteNs()},
          text_of(in.getText())};
}

peer_unreachable read(schema::PeerUnreachable::Reader m) {
  return {generation_id{m.getGeneration()}, incarnation_id{m.getWho().getHigh(), m.getWho().getLow()},
          text_of(m.getText())};
}

step_report read(schema::StepReport::Reader in) {
  return {generation_id{in.getGeneration()}, step_id{in.getStep()}, in.getStepsDone(), in.getLoss(),
          duration{in.getInStepsNs()},       in.getFirstLoss(),     in.getNonFinite()};
}

errc code_of(std::uint8_t in) {
  return enum_of<errc>(in, static_cast<unsigned>(errc::internal) + 1);
}

control read_heartbeat(schema::Control::Heartbeat::Reader in) {
  if (in.getDoing() >= activities) throw malformed{"an activity is out of range"};
  if (in.getCall() >= collective_calls) throw malformed{"a call between ranks is out of range"};
  return heartbeat{generation_id{in.getGeneration()},
                   in.getStepStarted(),
                   step_id{in.getStepApplied()},
                   in.getDoing(),
                   duration{in.getDoingForNs()},
                   duration{in.getStepBusyNs()},
                   in.getArrivals(),
                   in.getCall(),
                   in.getCallNumber()};
}

control read_director_heartbeat(schema::Control::DirectorHeartbeat::Reader in) {
  return director_heartbeat{generation_id{in.getGeneration()}, text_of(in.getFiredFaults(), fired_bytes_max)};
}

control read_actor_failed(schema::Control::ActorFailed::Reader in) {
  return actor_failed{generation_id{in.getGeneration()},
                      text_of(in.getActor()),
                      in.getStep(),
                      text_of(in.getText()),
                      in.getHealedLocally(),
                      in.getFaultNs(),
                      code_of(in.getCode())};
}

control read_prepare_failed(schema::Control::PrepareFailed::Reader in) {
  return prepare_failed{generation_id{in.getGeneration()}, {code_of(in.getCode()), text_of(in.getText())}};
}

control read(schema::Control::Reader in) {
  using which = schema::Control::Which;
  switch (in.which()) {
  case which::WORKER_READY: {
    const auto m = in.getWorkerReady();
    return worker_ready{m.getSlot(), m.getPid(), text_of(m.getDevice())};
  }
  case which::HEARTBEAT:
    return read_heartbeat(in.getHeartbeat());
  case which::GENERATION_PREPARED: {
    const auto m = in.getGenerationPrepared();
    return generation_prepared{generation_id{m.getGeneration()}, step_id{m.getStep()},
                               enum_of<state_source>(m.getSource(), 4)};
  }
  case which::PREPARE_FAILED:
    return read_prepare_failed(in.getPrepareFailed());
  case which::GENERATION_STOPPED: {
    const auto m = in.getGenerationStopped();
    return generation_stopped{generation_id{m.getGeneration()}, step_id{m.getApplied()}, m.getHoldsState()};
  }
  case which::ACTOR_FAILED:
    return read_actor_failed(in.getActorFailed());
  case which::STEP_REFUSED: {
    const auto m = in.getStepRefused();
    return step_refused{generation_id{m.getGeneration()}, step_id{m.getStep()}, m.getOurs()};
  }
  case which::FAULT_STRUCK:
    return fault_struck{in.getFaultStruck().getFault()};
  case which::PEER_UNREACHABLE:
    return read(in.getPeerUnreachable());
  case which::FIRST_STEP: {
    const auto m = in.getFirstStep();
    return first_step{generation_id{m.getGeneration()}, step_id{m.getStep()}};
  }
  case which::STEP_REPORT:
    return read(in.getStepReport());
  case which::CHECKPOINT_REPORT:
    return read(in.getCheckpointReport());
  case which::WORKER_FINISHED:
    return read(in.getWorkerFinished());
  case which::PREPARE_GENERATION:
    return read(in.getPrepareGeneration());
  case which::START_GENERATION:
    return start_generation{generation_id{in.getStartGeneration().getGeneration()}};
  case which::END_GENERATION: {
    const auto m = in.getEndGeneration();
    return end_generation{generation_id{m.getGeneration()}, text_of(m.getCause())};
  }
  case which::STOP_WORKER:
    return stop_worker{text_of(in.getStopWorker().getCause())};
  case which::DIRECTOR_HEARTBEAT:
    return read_director_heartbeat(in.getDirectorHeartbeat());
  case which::STATE_REQUEST: {
    const auto m = in.getStateRequest();
    return state_request{generation_id{m.getGeneration()}, step_id{m.getStep()}};
  }
  case which::STATE_OFFER: {
    const auto m = in.getStateOffer();
    if (m.getBytes() > limits::bulk_bytes_max) throw malformed{"a state is too large"};
    return state_offer{generation_id{m.getGeneration()}, step_id{m.getStep()}, m.getBytes(),
                       text_of(m.getDigest(), 64)};
  }
  case which::STATE_REFUSED: {
    const auto m = in.getStateRefused();
    return state_refused{generation_id{m.getGeneration()}, text_of(m.getText())};
  }
  }
  throw malformed{"an unknown kind of message"};
}

} // namespace

std::string_view name_of(const control& message) {
  static constexpr std::array<std::string_view, std::variant_size_v<control>> names{
      "worker_ready",       "heartbeat",       "generation_prepared", "prepare_failed",
      "generation_stopped", "actor_failed",    "first_step",          "step_report",
      "checkpoint_report",  "worker_finished", "prepare_generation",  "start_generation",
      "end_generation",     "stop_worker",     "director_heartbeat",  "state_request",
      "state_offer",        "state_refused",   "step_refused",        "fault_struck",
      "peer_unreachable"};
  return names[message.index()];
}

std::vector<std::byte> encode(const control& message) {
  capnp::MallocMessageBuilder builder;
  std::visit(writer{builder.initRoot<schema::Control>(), {}}, message);
  const auto words = capnp::messageToFlatArray(builder);
  const auto bytes = words.asBytes();
  std::vector<std::byte> out(bytes.size());
  std::memcpy(out.data(), bytes.begin(), bytes.size());
  return out;
}

expected<control> decode(std::span<const std::byte> bytes) {
  const auto refuse = [](const char* what) {
    return error{errc::corrupt, std::string{"control message: "} + what};
  };
  if (bytes.size() % sizeof(capnp::word) != 0 || bytes.empty()) return refuse("not a whole number of words");
  try {
    // Parts that point to the same bytes cannot make a small message a large value.
    const auto words = bytes.size() / sizeof(capnp::word);
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 2 * words + 64;
    options.nestingLimit = 8;
    capnp::FlatArrayMessageReader reader{{reinterpret_cast<const capnp::word*>(bytes.data()), words},
                                         options};
    return read(reader.getRoot<schema::Control>());
  } catch (const malformed& problem) {
    return refuse(problem.what);
  } catch (const kj::Exception&) {
    return refuse("not a valid Cap'n Proto message");
  }
}

} // namespace troupe::wire
