// Message soak: one of N processes that all send numbered messages to all others, as fast as they are heard.
//
// Flow:     harness -> commands -> [one process: a speaker for each peer, one listener] -> reports -> harness
// Checks:   each message of a speaker has a number; the listener sees them grow (PO-1), or says "disorder".
//           What comes back is counted by its speaker, as is the down of whom it speaks to.
// Options:  DETECT_AFTER_MS
// Commands: compose FRAGILE | peer INCARNATION ADDRESS | start | cut | stop | account | quit
// Reports:  ready composed progress session_ended disorder stopped account
// The network is that of a job: UCX, injected faults, sessions. A cut is the fault `path-error`, towards the
// peer that `compose` named.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <unordered_map>

#include <caf/all.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "runtime/faults/fault_switches.hpp"
#include "runtime/faults/faulty_transport.hpp"
#include "runtime/policy/timeouts.hpp"
#include "runtime/session/session_transport.hpp"
#include "tests/process/support/probe_seams.hpp"

namespace troupe::test {
namespace {

// Messages of a speaker that nobody said to have heard: those of all speakers fit a mailbox.
constexpr std::uint64_t window = 256;
constexpr std::uint64_t heard_every = 64;
constexpr duration progress_every{std::chrono::milliseconds{100}};

struct numbered {
  static constexpr std::string_view wire_name = "soak.numbered";
  incarnation_id from;
  std::uint64_t number{0};
  void fields(auto& archive) { archive(from, number); }
};
struct heard {
  static constexpr std::string_view wire_name = "soak.heard";
  std::uint64_t number{0};
  void fields(auto& archive) { archive(number); }
};
struct fence { // answered once all before it has been handled
  static constexpr std::string_view wire_name = "soak.fence";
  void fields(auto& archive) { archive(); }
};
struct passed {
  static constexpr std::string_view wire_name = "soak.passed";
  void fields(auto& archive) { archive(); }
};
enum class order : std::uint8_t { speak, stop };
struct errand { // inside the process
  static constexpr std::string_view wire_name = "soak.errand";
  order what{order::speak};
};

struct spoken {
  std::uint64_t sent{0}, heard{0}, returned{0};
  bool fenced{false};
  std::optional<error> down;
};
struct listened {
  std::uint64_t received{0}, last{0};
};

class speaker final : public caf::event_based_actor {
public:
  speaker(caf::actor_config& config, incarnation_id self, caf::actor target, spoken& account,
          std::function<void()> settled)
      : event_based_actor{config}
      , self_{self}
      , target_{std::move(target)}
      , account_{account}
      , settled_{std::move(settled)} {
    set_down_handler([this](caf::down_msg& down) {
      account_.down = to_troupe(down.reason);
      settled_();
    });
  }
  caf::behavior make_behavior() override {
    monitor(target_);
    return {[this](const errand& what) {
              speaking_ = what.what == order::speak;
              speaking_ ? speak() : end();
            },
            [this](const heard& what) {
              account_.heard = what.number;
              speak();
            },
            [this](const undelivered&) { ++account_.returned; }};
  }

private:
  void speak() {
    if (!speaking_ || account_.down) return;
    while (account_.sent - account_.heard < window)
      send(target_, numbered{self_, ++account_.sent});
  }
  void end() {
    request(target_, caf::infinite, fence{})
        .then([this](const passed&) { account_.fenced = true, settled_(); },
              [this](caf::error&) { settled_(); }); // its down tells why
  }
  incarnation_id self_;
  caf::actor target_;
  spoken& account_;
  std::function<void()> settled_;
  bool speaking_{false};
};

class listener final : public caf::event_based_actor {
public:
  listener(caf::actor_config& config, std::unordered_map<incarnation_id, listened>& accounts,
           std::function<void(const numbered&, const listened&)> disorder)
      : event_based_actor{config}
      , accounts_{accounts}
      , disorder_{std::move(disorder)} {}
  caf::behavior make_behavior() override {
    return {[this](const numbered& what) {
              auto& account = accounts_[what.from];
              ++account.received;
              if (what.number <= account.last) disorder_(what, account);
              account.last = what.number;
              if (what.number % heard_every == 0)
                send(caf::actor_cast<caf::actor>(current_sender()), heard{what.number});
            },
            [](const fence&) { return passed{}; }, [](const undelivered&) {}};
  }

private:
  std::unordered_map<incarnation_id, listened>& accounts_;
  std::function<void(const numbered&, const listened&)> disorder_;
};

class soaker {
public:
  soaker(probe_seams& here, const timeouts& limits)
      : here_{here}
      , limits_{limits}
      , codecs_{codec_table{}.add<numbered, heard, fence, passed>()}
      , switches_{here.clock}
      , runtime_{here.loop, here.clock, here.log} {
    here_.introduce();
    here_.listen([this](const probe_words& words) { obey(words); });
  }
  ~soaker() {
    speakers_.clear();
    listener_ = nullptr;
    (void)runtime_.stop();
    office_.reset();
  }

private:
  struct mouth {
    caf::actor actor;
    spoken account;
  };
  void report(std::string_view event) {
    nlohmann::json what;
    what["event"] = event;
    here_.report(std::move(what));
  }
  void obey(const probe_words& words) {
    if (words.empty()) return;
    const auto& what = words[0];
    if (what == "compose" && words.size() == 2) return compose(incarnation_of(words[1]));
    if (what == "peer" && words.size() == 3) return meet(incarnation_of(words[1]), words[2]);
    if (what == "cut") return switches_.path_error.arm();
    if (what == "quit") return leave();
    if (what == "account") return give_account();
    started_ = what == "start";
    stopping_ = what == "stop";
    for (auto& [who, one] : speakers_)
      caf::anon_send(one.actor, errand{started_ ? order::speak : order::stop});
    if (stopping_) settle();
  }
  void compose(incarnation_id fragile) {
    faulty_ = std::make_unique<faulty_transport>(*here_.network, here_.clock, switches_, fragile);
    sessions_ = std::make_unique<session_transport>(
        here_.loop, here_.clock, *faulty_,
        session_settings{.bridge_for = limits_.lease, .connect_for = limits_.handshake_deadline});
    office_ =
        std::make_unique<post_office>(runtime_, *sessions_, codecs_, post_office_settings{.job = peer_job});
    office_->set_path_lost_handler([this](incarnation_id who, const error& cause) {
      here_.report({{"event", "session_ended"}, {"peer", to_string(who)}, {"text", cause.text}});
    });
    listener_ =
        runtime_.system().spawn<listener>(listened_, [this](const numbered& what, const listened& account) {
          here_.report({{"event", "disorder"},
                        {"peer", to_string(what.from)},
                        {"number", what.number},
                        {"last", account.last}});
        });
    (void)office_->publish("listener", listener_);
    report("composed");
    tick();
  }
  void meet(incarnation_id who, const std::string& address) {
    if (!office_ || speakers_.contains(who)) return;
    (void)sessions_->connect(who, address_of(address));
    auto& one = speakers_[who];
    one.actor = runtime_.system().spawn<speaker>(sessions_->self(), office_->remote(who, "listener"),
                                                 one.account, [this] { settle(); });
    if (started_) caf::anon_send(one.actor, errand{order::speak});
  }
  void settle() {
    if (!stopping_) return;
    for (const auto& [who, one] : speakers_)
      if (!one.account.fenced && !one.account.down) return;
    stopping_ = false;
    report("stopped");
  }
  void give_account() {
    nlohmann::json said = nlohmann::json::object();
    nlohmann::json came = nlohmann::json::object();
    for (const auto& [who, one] : speakers_) {
      const auto& it = one.account;
      said[to_string(who)] = {{"sent", it.sent},
                              {"returned", it.returned},
                              {"fenced", it.fenced},
                              {"down", it.down ? std::string{to_string(it.down->code)} : std::string{}}};
    }
    for (const auto& [who, it] : listened_)
      came[to_string(who)] = it.received;
    const auto& paths = sessions_->counters();
    here_.report({{"event", "account"},
                  {"said", said},
                  {"heard", came},
                  {"paths",
                   {{"interrupted", paths.interruptions},
                    {"bridged", paths.bridged},
                    {"given up", paths.given_up},
                    {"malformed", paths.malformed}}}});
  }
  void tick() {
    std::uint64_t received = 0;
    for (const auto& [who, it] : listened_)
      received += it.received;
    here_.report({{"event", "progress"},
                  {"received", received},
                  {"interrupted", sessions_->counters().interruptions}});
    if (leaving_ && here_.network->idle()) return here_.loop.stop();
    here_.clock.call_after(progress_every, [this] { tick(); });
  }
  void leave() {
    if (!office_) return here_.loop.stop();
    for (const auto& [who, one] : speakers_)
      sessions_->close(who);
    leaving_ = true;
  }

  probe_seams& here_;
  timeouts limits_;
  codec_table codecs_;
  fault_switches switches_;
  actor_runtime runtime_;
  std::unique_ptr<faulty_transport> faulty_;
  std::unique_ptr<session_transport> sessions_;
  std::unique_ptr<post_office> office_;
  caf::actor listener_;
  std::map<incarnation_id, mouth> speakers_;
  std::unordered_map<incarnation_id, listened> listened_;
  bool started_{false}, stopping_{false}, leaving_{false};
};

} // namespace
} // namespace troupe::test

int main(int argc, char** argv) {
  using namespace troupe;
  if (argc != 2) {
    std::fprintf(stderr, "message_soak: expected DETECT_AFTER_MS\n");
    return 2;
  }
  const std::chrono::milliseconds detect_after{std::strtoul(argv[1], nullptr, 10)};
  const auto limits = timeouts::derive(detect_after);
  test::probe_seams here{"tcp", "lo", limits.handshake_deadline};
  {
    test::soaker one{here, limits};
    here.loop.run();
  }
  return 0;
}
