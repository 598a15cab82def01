#include "actors/director/director_actor.hpp"

#include <csignal>

#include <caf/all.hpp>

#include "actors/contracts/director_messages.hpp"
#include "actors/contracts/local_messages.hpp"
#include "actors/director/journal.hpp"
#include "actors/remote/control_channel.hpp"
#include "actors/remote/wire_message.hpp"

namespace troupe {
namespace {

using shared_search = std::shared_ptr<resume_search>;

class seam_ports final : public director_ports {
public:
  seam_ports(const director_parts& parts, caf::actor_addr self)
      : outside_{parts.outside}
      , office_{parts.office}
      , parts_{parts}
      , search_{std::make_shared<resume_search>(parts.resume)}
      , self_{std::move(self)} {}

  [[nodiscard]] time_point now() const override { return outside_.clock.now(); }
  [[nodiscard]] std::uint64_t random() override { return outside_.random.next(); }
  void call_after(duration delay, task work) override {
    auto held = std::make_shared<task>(std::move(work));
    outside_.clock.call_after(delay, [to = self_, held] { tell(to, run_later{held}); });
  }
  void send(incarnation_id to, const wire::control& message) override {
    (void)send_control(office_, to, message);
  }
  expected<void> connect(incarnation_id to, const peer_address& address) override {
    return outside_.network.connect(to, address);
  }
  void close(incarnation_id to, const error& cause) override {
    office_.peer_lost(to, cause);
    outside_.network.close(to);
  }
  expected<child_process> start_process(std::uint32_t slot, process_exit_handler on_exit) override {
    auto spec = parts_.worker;
    spec.environment.push_back(std::string{slot_variable} + "=" + std::to_string(slot));
    spec.environment.push_back(std::string{endpoint_variable} + "=" + parts_.door.endpoint());
    auto held = std::make_shared<process_exit_handler>(std::move(on_exit));
    return outside_.processes.start(spec, [to = self_, held](const process_exit& how) {
      tell(to, worker_exited{held, how});
    });
  }
  void signal(std::int64_t pid, int number) override { (void)outside_.processes.signal(pid, number); }
  void find_resume_point() override {
    outside_.storage_thread.post([&files = outside_.files, search = search_, to = self_] {
      auto found = troupe::find_resume_point(files, *search);
      resume_point_found answer{{}, found ? expected<resume_point>{found->from} : found.failure()};
      if (found) {
        for (const auto& one : found->rejected)
          answer.rejected.push_back({one.step, one.path + ": " + one.cause.text});
        search->first = false;
      }
      tell(to, std::move(answer));
    });
  }
  [[nodiscard]] expected<std::string> prepare_collective(generation_id generation,
                                                         std::vector<collective_member> members) override {
    office_.set_generation(generation);
    auto shape = parts_.sums;
    shape.generation = generation;
    shape.world = static_cast<std::uint32_t>(members.size());
    shape.members = std::move(members);
    return outside_.collectives.prepare(shape);
  }
  [[nodiscard]] std::string collective_kind() const override { return outside_.collectives.kind(); }
  [[nodiscard]] std::string collective_why() const override { return outside_.collectives.why(); }
  void generation_changed(generation_id generation, const fired_faults& fired, task durable) override {
    auto held = std::make_shared<task>(std::move(durable));
    if (search_->directory.empty()) return (*held)();
    journal(generation, fired, [to = self_, held] { tell(to, run_later{held}); });
  }
  [[nodiscard]] std::string lanes(incarnation_id to) const override {
    return parts_.lanes ? parts_.lanes(to) : std::string{};
  }
  void keep_flight(const flight_header& of, std::shared_ptr<const black_box> box) override {
    if (parts_.flight_directory.empty()) return;
    auto about = std::make_shared<flight_header>(of);
    about->now = outside_.clock.now();
    about->arrivals = outside_.collectives.arrivals();
    auto where = std::make_shared<std::string>(parts_.flight_directory);
    outside_.storage_thread.post([&outside = outside_, about, where, box = std::move(box)] {
      auto written = write_flight_dump(outside.files, *where, make_flight_dump(*about, box->flight));
      if (!written) outside.log.write(log_level::warning, "flight", written.failure().text);
    });
  }
  void record(job_record_variant what) override {
    caf::anon_send(*parts_.reporter,
                   record_message{std::make_shared<const job_record_variant>(std::move(what))});
  }
  void over(const std::optional<error>& cause) override {
    if (!search_->directory.empty() && journal_is_ours_) {
      // Every writer has been reaped (DI-4): what a killed one left unfinished goes with the journal.
      outside_.storage_thread.post([&files = outside_.files, search = search_] {
        (void)remove_journal(files, search->directory);
        (void)catalog{files, search->directory}.clean_unfinished();
      });
    }
    auto then = std::make_shared<std::function<void()>>([done = parts_.over, cause] { done(cause); });
    caf::anon_send(*parts_.reporter, reports_done{std::move(then)});
  }
  // What a successor needs is on storage before `then` runs, on the storage thread.
  void journal(generation_id generation, const fired_faults& fired, std::function<void()> then) {
    auto entry = std::make_shared<journal_entry>();
    entry->job = parts_.job;
    entry->generation = generation;
    for (const auto& one : parts_.settings.faults)
      entry->faults.push_back(to_text(one));
    entry->fired = fired.encode();
    auto after = std::make_shared<std::function<void()>>(std::move(then));
    journal_is_ours_ = true;
    outside_.storage_thread.post([&files = outside_.files, search = search_, entry, after] {
      if (!search->directory.empty()) (void)write_journal(files, search->directory, *entry);
      if (*after) (*after)();
    });
  }

private:
  template <class Message>
  static void tell(const caf::actor_addr& to, Message message) {
    if (auto alive = caf::actor_cast<caf::actor>(to)) caf::anon_send(alive, std::move(message));
  }

  environment& outside_;
  post_office& office_;
  const director_parts parts_;
  shared_search search_;
  caf::actor_addr self_;
  bool journal_is_ours_{false}; // this job got as far as a generation: no successor of the one before is due
};

class director_state {
public:
  static inline const char* name = "director";
  ~director_state() {
    if (published_) *published_ = nullptr;
  }

  void begin(caf::event_based_actor* self, const director_parts& parts,
             std::shared_ptr<director_core*> published) {
    parts_.emplace(parts);
    ports_ = std::make_unique<seam_ports>(parts, self->address());
    core_ = std::make_unique<director_core>(parts.settings, *ports_);
    published_ = std::move(published);
    *published_ = core_.get();
    job_started_ = parts.outside.clock.now();
  }

  // `director-kill`: the successor's knowledge first, then the blow.
  void strike_self() {
    const auto& plan = parts_->settings.faults;
    const auto step = step_id{core_->newest_step() + 1};
    const auto due_now = due(plan,
                             {.role = fault_role::director,
                              .previous = previous_step_,
                              .step = step,
                              .elapsed = parts_->outside.clock.now() - job_started_},
                             core_->fired());
    previous_step_ = step;
    if (due_now.empty()) return;
    auto fired = core_->fired();
    fired.mark(due_now.front(), rank_id{0});
    ports_->journal(core_->members().generation(), fired,
                    [&self = parts_->outside.self] { self.raise_signal(SIGKILL); });
  }

  [[nodiscard]] director_core& core() { return *core_; }

private:
  std::optional<director_parts> parts_;
  std::unique_ptr<seam_ports> ports_;
  std::unique_ptr<director_core> core_;
  std::shared_ptr<director_core*> published_;
  step_id previous_step_;
  time_point job_started_;
};

caf::behavior director(caf::stateful_actor<director_state>* self, const director_parts& parts,
                       const std::shared_ptr<director_core*>& published) {
  auto& state = self->state;
  state.begin(self, parts, published);
  return {
      [&state](start_job) { state.core().start(); },
      [&state](const stop_job& m) { state.core().stop(m.cause); },
      [&state](const control_received& m) { state.core().on_message(m.from, *m.message); },
      [&state](const path_lost& m) { state.core().on_path_lost(m.peer, m.cause); },
      [&state](const path_interrupted& m) { state.core().on_path_interrupted(m.peer, m.cause); },
      [](const worker_exited& m) { (*m.handler)(m.how); },
      [](const run_later& m) { (*m.work)(); },
      [&state](tick) {
        state.strike_self();
        state.core().on_tick();
      },
      [&state](const resume_point_found& m) { state.core().on_resume_point(m.rejected, m.result); },
  };
}

} // namespace

caf::actor spawn_director(caf::actor_system& system, const director_parts& parts,
                          std::shared_ptr<director_core*> core) {
  return system.spawn(director, parts, std::move(core));
}

} // namespace troupe
