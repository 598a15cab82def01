#include "cli/sim/conversation.hpp"

#include <csignal>
#include <map>
#include <memory>

#include <caf/all.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "cli/sim/ledger.hpp"
#include "runtime/base/counter_rng.hpp"
#include "runtime/session/session_environment.hpp"
#include "runtime/sim/sim_environment.hpp"

namespace troupe::sim {
namespace {

constexpr std::size_t processes = 4;
constexpr std::uint64_t events_max = 200'000;
constexpr std::size_t narrow_window = 512; // bytes that a session keeps for a peer
constexpr std::size_t wide_window = std::size_t{1} << 20;
constexpr auto talk_time = std::chrono::seconds{2};
constexpr auto pause_time = std::chrono::milliseconds{400};
constexpr auto time_max = std::chrono::seconds{6}; // the last requests time out within it

post_office_settings settings_of(bool foreign) {
  return {.job = {9, foreign ? 10U : 9U},
          .requests_max = 6,
          .mailbox_messages_max = 3,
          .edge_messages_max = 4,
          .request_timeout = std::chrono::seconds{1}};
}

enum class wish : std::uint8_t { answer, keep, fail, end };

struct question {
  static constexpr std::string_view wire_name = "sim.question";
  std::uint64_t wanted{0}; // a wish
  void fields(auto& archive) { archive(wanted); }
};
struct reply {
  static constexpr std::string_view wire_name = "sim.reply";
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct note {
  static constexpr std::string_view wire_name = "sim.note";
  static constexpr bool generation_bound = true;
  std::uint64_t speaker{0};
  std::uint64_t number{0}; // of what this speaker has told
  std::uint64_t generation{0};
  std::uint64_t sent_ns{0};
  void fields(auto& archive) { archive(speaker, number, generation, sent_ns); }
};
struct answer_all { // what was kept
  static constexpr std::string_view wire_name = "sim.answer_all";
};
// Not a kill: that would be passed on to all who are linked.
struct go_home {
  static constexpr std::string_view wire_name = "sim.go_home";
};
// To a speaker, from its own process.
struct errand {
  static constexpr std::string_view wire_name = "sim.errand";
  enum class kind : std::uint8_t { ask, tell, watch } what{kind::tell};
  caf::actor target;
  wish wanted{wish::answer};
  generation_id generation;
};

// What all processes of a conversation share.
struct stage {
  explicit stage(std::uint64_t seed)
      : random{seed, stream_of("conversation")}
      , machine{seed} {
    codecs.add<question, reply, note>();
  }
  [[nodiscard]] std::uint64_t draw(std::uint64_t below) { return random.bits(draws++) % below; }
  [[nodiscard]] time_point now() const { return machine.world.now(); }
  void tell(const std::string& what) {
    struck.push_back(std::to_string(to_ms(now().time_since_epoch())) + " ms: " + what);
  }

  counter_rng random;
  std::uint64_t draws{0};
  ledger book;
  codec_table codecs;
  std::map<std::int64_t, class talker*> talkers;
  std::vector<std::string> struck;
  std::uint64_t generation{1};
  sim_machine machine; // last: its processes use all of the above
};

class server final : public caf::event_based_actor {
public:
  server(caf::actor_config& config, stage& on)
      : event_based_actor{config}
      , on_{on} {
    set_exit_handler([](caf::exit_msg&) {}); // of those that are linked to it
  }
  caf::behavior make_behavior() override {
    return {[this](const question& what) -> caf::result<reply> {
              if (what.wanted == static_cast<std::uint64_t>(wish::fail))
                throw actor_error{errc::device_failed, "asked to fail"};
              if (what.wanted == static_cast<std::uint64_t>(wish::end)) quit();
              if (what.wanted != static_cast<std::uint64_t>(wish::keep)) return reply{1};
              kept_.push_back(make_response_promise());
              return caf::delegated<reply>{};
            },
            [this](go_home) { quit(caf::exit_reason::user_shutdown); },
            [this](answer_all) {
              for (auto& one : kept_)
                one.deliver(reply{2});
              kept_.clear();
            },
            [this](const note& what) {
              on_.book.arrived(what.speaker, what.number, generation_id{what.generation},
                               time_from_ns(static_cast<std::int64_t>(what.sent_ns)));
            }};
  }
  void on_exit() override { kept_.clear(); } // a promise holds its actor: both would stay for ever

private:
  stage& on_;
  std::vector<caf::response_promise> kept_;
};

class speaker final : public caf::event_based_actor {
public:
  speaker(caf::actor_config& config, stage& on, std::uint64_t number)
      : event_based_actor{config}
      , on_{on}
      , number_{number} {
    set_down_handler([](caf::down_msg&) {});
    set_exit_handler([](caf::exit_msg&) {}); // of those that it is linked to
  }
  caf::behavior make_behavior() override {
    return {[this](const errand& what) { run(what); },
            [this](go_home) { quit(caf::exit_reason::user_shutdown); },
            [this](const undelivered&) { ++on_.book.of(number_).returned; }};
  }

private:
  void run(const errand& what) {
    switch (what.what) {
    case errand::kind::tell:
      return send(what.target, note{number_, ++on_.book.of(number_).told, what.generation.value(),
                                    static_cast<std::uint64_t>(to_ns(on_.now()))});
    case errand::kind::watch:
      monitor(what.target);
      return link_to(what.target);
    case errand::kind::ask: {
      const auto number = on_.book.asked(number_);
      request(what.target, caf::infinite, question{static_cast<std::uint64_t>(what.wanted)})
          .then([this, number](const reply&) { on_.book.completed(number, std::nullopt, on_.now()); },
                [this, number](caf::error& why) { on_.book.completed(number, to_troupe(why), on_.now()); });
    }
    }
  }

  stage& on_;
  std::uint64_t number_;
};

// One process: a server, and a speaker for each process that it talks to.
class talker final : public sim_program {
public:
  talker(stage& on, sim_process& process, bool foreign)
      : on_{on}
      , process_{process}
      , foreign_{foreign}
      , seams_{on.machine, process}
      , sessions_{seams_.env(), {.window_bytes = on.draw(4) == 0 ? narrow_window : wide_window}}
      , runtime_{std::make_unique<actor_runtime>(env().loop, env().clock, env().log)}
      , office_{std::make_unique<post_office>(*runtime_, env().network, on.codecs, settings_of(foreign))} {
    for (auto& [pid, other] : on_.talkers)
      (void)env().network.connect(other->self(), other->env().network.local_address());
    on_.talkers[process.pid()] = this;
    serve();
    listener_ = runtime_->system().spawn<server>(on_);
    (void)office_->publish("listener", listener_);
    speak_later();
  }
  ~talker() override {
    on_.talkers.erase(process_.pid());
    on_.book.process_ended(process_.pid(), on_.now());
    server_ = listener_ = nullptr;
    speakers_.clear();
    handles_.clear();
    (void)runtime_->stop(); // the last turns of actors may still use the office
    office_.reset();
    runtime_.reset();
  }
  [[nodiscard]] environment& env() { return sessions_.env(); }
  [[nodiscard]] const sim_process& process() const { return process_; }
  [[nodiscard]] incarnation_id self() { return env().network.self(); }

private:
  struct mouth {
    std::uint64_t number{0};
    caf::actor actor;
  };

  void serve() {
    server_ = runtime_->system().spawn<server>(on_);
    (void)office_->publish("server", server_);
  }
  mouth& mouth_to(std::int64_t pid, const talker& other) {
    auto& one = speakers_[pid];
    if (one.actor) return one;
    one.number = on_.book.new_speaker(process_.pid(), pid);
    if (foreign_ != other.foreign_) on_.book.of(one.number).path_held = false;
    one.actor = runtime_->system().spawn<speaker>(on_, one.number);
    return one;
  }
  // Now and then an old handle, whose actor may have ended.
  caf::actor server_of(std::int64_t pid, talker& other) {
    auto& known = handles_[pid];
    if (!known || on_.draw(4) != 0) known = office_->remote(other.self(), "server");
    return known;
  }
  caf::actor listener_of(talker& other) {
    return office_->remote(other.self(), on_.draw(8) == 0 ? "nobody" : "listener");
  }
  void speak_later() {
    const auto pause = std::chrono::milliseconds{1 + on_.draw(20)};
    env().clock.call_after(pause, [this] {
      if (on_.now() > time_point{talk_time}) return;
      speak();
      speak_later();
    });
  }
  void speak() {
    auto place = on_.talkers.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(on_.draw(on_.talkers.size())));
    auto& [pid, other] = *place;
    if (other == this) return attend();
    auto& to = mouth_to(pid, *other);
    const auto send = [&](errand::kind what) {
      const auto target = what == errand::kind::tell ? listener_of(*other) : server_of(pid, *other);
      caf::anon_send(to.actor, errand{what, target, static_cast<wish>(on_.draw(4)), generation_});
    };
    switch (on_.draw(16)) {
    case 0:
      return send(errand::kind::watch);
    case 1: // the speaker ends, and with it what it waits for
      on_.book.speaker_ended(to.number);
      caf::anon_send(to.actor, go_home{});
      to.actor = nullptr;
      return;
    case 2:
      return declare_lost(pid, *other);
    case 3:
    case 4:
    case 5:
    case 6:
      for (std::uint64_t i = 0, count = 1 + on_.draw(8); i < count; ++i)
        send(errand::kind::ask);
      return;
    default:
      for (std::uint64_t i = 0, count = 1 + on_.draw(6); i < count; ++i)
        send(errand::kind::tell);
    }
  }
  // To its own affairs.
  void attend() {
    caf::anon_send(server_, answer_all{});
    if (on_.draw(3) == 0) serve_again();
    if (on_.draw(3) != 0) return;
    generation_ = generation_id{on_.generation += on_.draw(2)};
    office_->set_generation(generation_);
    on_.book.generation_set(process_.pid(), generation_, on_.now());
  }
  void serve_again() {
    office_->withdraw("server");
    caf::anon_send(server_, go_home{});
    serve();
  }
  void declare_lost(std::int64_t pid, talker& other) {
    if (on_.draw(6) != 0) return;
    on_.tell("process " + std::to_string(process_.pid()) + " declares " + std::to_string(pid) + " lost");
    on_.book.declared_lost(process_.pid(), pid, on_.now());
    office_->peer_lost(other.self(), {errc::process_died, "declared lost"});
  }

  stage& on_;
  sim_process& process_;
  bool foreign_;
  sim_environment seams_;
  session_environment sessions_;
  std::unique_ptr<actor_runtime> runtime_;
  std::unique_ptr<post_office> office_;
  caf::actor server_;
  caf::actor listener_; // never ends: what reaches it is counted
  std::map<std::int64_t, mouth> speakers_;
  std::map<std::int64_t, caf::actor> handles_;
  generation_id generation_;
};

void start(stage& on, bool foreign) {
  on.machine.world.start({}, duration{0}, [&on, foreign](sim_process& process) {
    return std::make_unique<talker>(on, process, foreign);
  });
}

// A path fails, where one of the two or both see it.
void break_path(stage& on) {
  const auto any = [&on] {
    auto place = on.talkers.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(on.draw(on.talkers.size())));
    return place;
  };
  const auto [here, one] = *any();
  const auto [there, other] = *any();
  if (one == other) return;
  on.tell("the path between " + std::to_string(here) + " and " + std::to_string(there) + " fails");
  on.machine.network.fail_path(one->process(), other->process(), "it failed");
  if (on.draw(2) == 0) on.machine.network.fail_path(other->process(), one->process(), "it failed");
}

// Kills one process, which is succeeded; or stops one for a while; or breaks paths.
void strike(stage& on) {
  if (on.draw(2) == 0) {
    for (std::uint64_t i = 0, breaks = 1 + on.draw(6); i < breaks; ++i)
      break_path(on);
    return;
  }
  const auto pids = on.machine.world.alive();
  const auto pid = pids[on.draw(pids.size())];
  const bool killed = on.draw(2) == 0;
  on.tell("process " + std::to_string(pid) + (killed ? " is killed" : " stops"));
  if (killed) {
    on.machine.world.kill(pid, SIGKILL);
    return start(on, false);
  }
  on.machine.world.pause(pid, true);
  on.machine.world.schedule(pause_time, nullptr, [&on, pid] { on.machine.world.pause(pid, false); });
}

} // namespace

conversation_result converse(std::uint64_t seed) {
  stage on{seed};
  for (std::size_t i = 0; i < processes; ++i)
    start(on, false);
  if (on.draw(4) == 0) start(on, true); // of another job
  for (std::uint64_t i = 0, strikes = on.draw(8); i < strikes; ++i) {
    const auto at = std::chrono::milliseconds{50 + on.draw(1500)};
    on.machine.world.schedule(at, nullptr, [&on] { strike(on); });
  }
  (void)on.machine.world.run_until([&on] { return on.now() > time_point{time_max}; }, events_max);
  const auto& world = on.machine.world;
  conversation_result out{.findings = on.book.check(),
                          .struck = on.struck,
                          .trace_digest = world.trace_digest(),
                          .events = world.events(),
                          .messages = on.machine.network.messages(),
                          .virtual_time = world.now().time_since_epoch(),
                          .log = on.machine.log};
  if (world.events() >= events_max)
    out.findings.emplace_back("the conversation did not end within its budget of events");
  return out;
}

} // namespace troupe::sim
