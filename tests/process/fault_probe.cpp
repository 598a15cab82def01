// Fault probe: one of two processes of the fault matrix. It does what it is told, and reports what it learns.
//
// Flow:     harness -> commands -> [probe] <-> the other probe; [probe] -> reports -> harness
// Both probes are alike: an actor "server", an actor that asks and watches the other's server, heartbeats and
// the product's failure detector both ways, numbered small messages, bulk transfers.
// Options:  LANES DEVICES DETECT_AFTER_MS [sessions]: with it, sessions bridge what a path loses
// Commands: room | connect INCARNATION ADDRESS | watch | ask | keep | stream | bulk | goodbye | forget | quit
// Reports:  ready room connecting open streaming bulk_started answered told(what, code, text) left
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <caf/all.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "runtime/policy/failure_detector.hpp"
#include "runtime/session/session_transport.hpp"
#include "tests/process/support/probe_seams.hpp"

namespace troupe::test {
namespace {

constexpr std::uint64_t heartbeat = 1; // control types
constexpr std::uint64_t stream_window = 32;
constexpr std::size_t bulk_bytes = std::size_t{64} << 20U;

struct question {
  static constexpr std::string_view wire_name = "probe.question";
  bool keep{false};
  void fields(auto& archive) { archive(keep); }
};
struct reply {
  static constexpr std::string_view wire_name = "probe.reply";
  std::uint64_t value{42};
  void fields(auto& archive) { archive(value); }
};
struct numbered {
  static constexpr std::string_view wire_name = "probe.numbered";
  std::uint64_t number{0};
  void fields(auto& archive) { archive(number); }
};
struct received { // up to and including
  static constexpr std::string_view wire_name = "probe.received";
  std::uint64_t number{0};
  void fields(auto& archive) { archive(number); }
};
// To the asker, inside the process.
struct errand {
  static constexpr std::string_view wire_name = "probe.errand";
  std::string what;
  caf::actor target;
};

using teller = std::function<void(std::string_view what, const error& cause)>;
using happening = std::function<void(std::string_view)>;

// Answers, or keeps the question; counts numbered messages and says how far it got.
class server final : public caf::event_based_actor {
public:
  server(caf::actor_config& config, happening tell)
      : event_based_actor{config}
      , tell_{std::move(tell)} {}
  caf::behavior make_behavior() override {
    return {[this](const question& what) -> caf::result<reply> {
              if (!what.keep) return reply{};
              kept_.push_back(make_response_promise());
              return caf::delegated<reply>{};
            },
            [this](const numbered& what) {
              if (what.number != ++last_) tell_("disorder");
              if (what.number % stream_window == 0) tell_("streaming");
              send(caf::actor_cast<caf::actor>(current_sender()), received{what.number});
            },
            [](const undelivered&) {}};
  }
  void on_exit() override { kept_.clear(); } // a promise holds its actor: both would stay for ever

private:
  happening tell_;
  std::uint64_t last_{0};
  std::vector<caf::response_promise> kept_;
};

class asker final : public caf::event_based_actor {
public:
  asker(caf::actor_config& config, teller tell, happening note)
      : event_based_actor{config}
      , tell_{std::move(tell)}
      , note_{std::move(note)} {
    set_down_handler([this](caf::down_msg& down) { tell_("down", to_troupe(down.reason)); });
  }
  caf::behavior make_behavior() override {
    return {[this](const errand& what) { run(what); },
            [this](const received& what) {
              heard_ = what.number;
              stream();
            },
            [this](const undelivered& what) {
              if (!std::exchange(returned_, true)) tell_("undelivered", what.cause);
            }};
  }

private:
  void run(const errand& what) {
    target_ = what.target;
    if (what.what == "watch") return monitor(target_);
    if (what.what == "stream") return stream();
    request(target_, caf::infinite, question{what.what == "keep"})
        .then([this](const reply&) { note_("answered"); },
              [this](caf::error& why) { tell_("request_failed", to_troupe(why)); });
  }
  void stream() {
    while (!returned_ && sent_ - heard_ < stream_window)
      send(target_, numbered{++sent_});
  }
  teller tell_;
  happening note_;
  caf::actor target_;
  std::uint64_t sent_{0}, heard_{0};
  bool returned_{false};
};

class probe final : bulk_listener {
public:
  probe(probe_seams& here, duration detect_after, bool sessions)
      : here_{here}
      , limits_{timeouts::derive(detect_after)}
      , sessions_{sessions ? std::make_unique<session_transport>(
                                 here.loop, here.clock, *here.network,
                                 session_settings{.bridge_for = limits_.lease,
                                                  .connect_for = limits_.handshake_deadline})
                           : nullptr}
      , network_{sessions ? static_cast<transport&>(*sessions_) : *here.network}
      , codecs_{codec_table{}.add<question, reply, numbered, received>()}
      , runtime_{here.loop, here.clock, here.log}
      , office_{std::make_unique<post_office>(runtime_, network_, codecs_,
                                              post_office_settings{.job = peer_job})}
      , detector_{limits_} {
    const happening note = [this](std::string_view what) { report(what); };
    const auto tell = [this](std::string_view what, const error& cause) { told(what, cause); };
    server_ = runtime_.system().spawn<server>(note);
    asker_ = runtime_.system().spawn<asker>(tell, note);
    (void)office_->publish("server", server_);
    office_->set_control_handler(
        [this](incarnation_id from, std::uint64_t, std::span<const std::byte>) { heard(from); });
    office_->set_path_lost_handler([this](incarnation_id who, const error& cause) {
      told("path_lost", cause);
      if (cause.code == errc::actor_stopped) return detector_.forget(who); // a goodbye
      detector_.path_error(who, here_.clock.now());
    });
    office_->set_bulk_handler(this);
    tick();
    here_.introduce();
    here_.listen([this](const probe_words& words) { obey(words); });
  }
  ~probe() override {
    target_ = server_ = asker_ = nullptr;
    (void)runtime_.stop();
    office_.reset();
  }

private:
  void report(std::string_view event) {
    nlohmann::json what;
    what["event"] = event;
    here_.report(std::move(what));
  }
  void obey(const probe_words& words) {
    if (words.empty()) return;
    const auto& what = words[0];
    if (what == "room") return make_room();
    if (what == "connect" && words.size() == 3) return connect(incarnation_of(words[1]), words[2]);
    if (what == "quit") return leave();
    if (!peer_) return;
    if (what == "goodbye") return network_.close(*peer_);
    if (what == "forget") return office_->peer_lost(*peer_, {errc::aborted, "told to forget it"});
    if (what == "bulk") return send_bulk();
    caf::anon_send(asker_, errand{what, target_});
  }
  void connect(incarnation_id who, const std::string& address) {
    peer_ = who;
    report("connecting");
    const auto begun = network_.connect(who, address_of(address));
    if (!begun) return told("path_lost", begun.failure());
    detector_.watch(who, rank_id{1}, here_.clock.now());
    target_ = office_->remote(who, "server");
    beat();
  }
  void leave() {
    detector_ = failure_detector{limits_};
    if (peer_) network_.close(*peer_);
    leaving_ = true;
  }

  // --- heartbeats and verdicts ---

  void beat() {
    if (leaving_) return;
    (void)office_->send_control(*peer_, heartbeat, {});
    here_.clock.call_after(limits_.heartbeat_interval, [this] { beat(); });
  }
  void heard(incarnation_id from) {
    if (!std::exchange(open_, true))
      here_.report({{"event", "open"}, {"lanes", short_lanes(here_.network->lanes(from))}});
    (void)detector_.beat(from, progress{}, here_.clock.now());
  }
  void tick() {
    for (const auto& one : detector_.tick(here_.clock.now())) {
      const error cause{errc::process_died, one.text};
      told("verdict", cause);
      office_->peer_lost(one.who, cause);
      network_.close(one.who);
    }
    if (leaving_ && here_.network->idle()) {
      const auto seen = office_->counters();
      here_.report({{"event", "left"},
                    {"requests", seen.requests},
                    {"proxies", seen.proxies},
                    {"bridged", sessions_ ? sessions_->counters().bridged : 0}});
      return here_.loop.stop();
    }
    here_.clock.call_after(limits_.tick_interval, [this] { tick(); });
  }
  void told(std::string_view what, const error& cause) {
    here_.report({{"event", "told"}, {"what", what}, {"code", to_string(cause.code)}, {"text", cause.text}});
  }

  // --- bulk: one transfer after the other, out and in ---

  // Touching so much memory for the first time takes longer than a lease: it is done before anybody watches.
  void make_room() {
    out_.assign(bulk_bytes, std::byte{7});
    in_.resize(bulk_bytes);
    report("room");
  }
  void send_bulk() {
    office_->send_bulk(*peer_, ++transfer_, out_, [this](const expected<void>& result) {
      if (!result) return told("bulk_out_failed", result.failure());
      report("bulk_sent");
      send_bulk();
    });
  }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& what) override {
    report("bulk_started");
    return std::span{in_}.first(what.bytes);
  }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void> result) override {
    if (!result) told("bulk_in_failed", result.failure());
  }

  probe_seams& here_;
  timeouts limits_;
  std::unique_ptr<session_transport> sessions_; // absent: the path itself
  transport& network_;
  codec_table codecs_;
  actor_runtime runtime_;
  std::unique_ptr<post_office> office_;
  failure_detector detector_;
  caf::actor server_, asker_, target_;
  std::optional<incarnation_id> peer_;
  std::vector<std::byte> out_, in_;
  std::uint64_t transfer_{0};
  bool open_{false}, leaving_{false};
};

} // namespace
} // namespace troupe::test

int main(int argc, char** argv) {
  using namespace troupe;
  const bool sessions = argc == 5 && std::string_view{argv[4]} == "sessions";
  if (argc != 4 && !sessions) {
    std::fprintf(stderr, "fault_probe: expected LANES DEVICES DETECT_AFTER_MS [sessions]\n");
    return 2;
  }
  const std::chrono::milliseconds detect_after{std::strtoul(argv[3], nullptr, 10)};
  test::probe_seams here{argv[1], argv[2], timeouts::derive(detect_after).handshake_deadline};
  {
    test::probe one{here, detect_after, sessions};
    here.loop.run();
  }
  return 0;
}
