#include "actors/worker/worker_actor.hpp"

#include <caf/all.hpp>

#include "actors/contracts/local_messages.hpp"
#include "actors/remote/control_channel.hpp"
#include "actors/remote/wire_message.hpp"
#include "actors/system/errors.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"

namespace troupe {

worker_neighbours::worker_neighbours() = default;
worker_neighbours::~worker_neighbours() = default;
void worker_neighbours::forget() {
  prefetcher.reset();
  checkpointer.reset();
  worker.reset();
}

namespace {

class process_ports final : public worker_ports {
public:
  process_ports(const worker_parts& parts, caf::event_based_actor* self)
      : parts_{parts}
      , self_{self} {}

  void send_director(const wire::control& message) override {
    (void)send_control(parts_.office, parts_.director,
                       message); // a lost director is the orphan watch's matter
  }
  expected<void> send_peer(const wire::member& to, const wire::control& message) override {
    if (!to.address.empty()) {
      if (auto path = parts_.outside.network.connect(to.incarnation, to.address); !path) return path;
    }
    return send_control(parts_.office, to.incarnation, message);
  }
  void send_state(incarnation_id to, std::uint64_t transfer, std::span<const std::byte> bytes,
                  bulk_done done) override {
    parts_.office.send_bulk(to, transfer, bytes, std::move(done));
  }
  void assign_prefetch(const batch_assignment& what) override {
    self_->send(*parts_.neighbours->prefetcher, troupe::assign_prefetch{what});
  }
  void stop_prefetch() override { self_->send(*parts_.neighbours->prefetcher, troupe::stop_prefetch{}); }
  void write_checkpoint(snapshot what, duration stall) override {
    self_->send(*parts_.neighbours->checkpointer,
                troupe::write_checkpoint{std::make_shared<snapshot>(std::move(what)), stall});
  }
  void load_checkpoint(const std::string& path, std::span<std::byte> into, load_done done) override {
    auto answer = std::make_shared<load_done>(std::move(done));
    auto place = std::make_shared<std::string>(path);
    auto layout = std::make_shared<state_layout>(parts_.layout);
    auto& loop = parts_.outside.loop;
    parts_.outside.storage_thread.post([&files = parts_.outside.files, &loop, place, layout, into, answer] {
      auto version = read_manifest(files, *place);
      auto loaded = std::make_shared<expected<checkpoint_metadata>>(
          version ? load_version(files, {version->metadata.step, *place, *version}, *layout, into)
                  : expected<checkpoint_metadata>{version.failure()});
      loop.post([answer, loaded] { (*answer)(*loaded); });
    });
  }
  void keep_flight(const flight_header& of) override {
    if (parts_.flight_directory.empty()) return;
    auto about = std::make_shared<flight_header>(of);
    parts_.compute.describe(*about);
    auto where = std::make_shared<std::string>(parts_.flight_directory);
    parts_.outside.storage_thread.post([&outside = parts_.outside, about, where] {
      auto written = write_flight_dump(outside.files, *where, make_flight_dump(*about, outside.box.flight));
      if (!written) outside.log.write(log_level::warning, "flight", written.failure().text);
    });
  }
  void fail(const error& cause) override {
    parts_.neighbours->failure_told = true;
    self_->send(self_, fail_now{cause});
  }
  void leave(const std::string& cause) override { parts_.leave(cause); }

private:
  const worker_parts parts_;
  caf::event_based_actor* self_; // the ports live inside it
};

class worker_state {
public:
  static inline const char* name = "worker";
  ~worker_state() {
    if (neighbours_ != nullptr && neighbours_->core == core_.get()) neighbours_->core = nullptr;
  }
  void begin(caf::event_based_actor* self, const worker_parts& parts) {
    ports_ = std::make_unique<process_ports>(parts, self);
    core_ = std::make_unique<worker_core>(parts.settings, parts.compute, *ports_);
    director_ = parts.director;
    neighbours_ = parts.neighbours;
    neighbours_->core = core_.get();
  }
  [[nodiscard]] worker_core& core() { return *core_; }
  void on_control(const control_received& m) {
    m.from == director_ ? core_->on_director(*m.message) : core_->on_peer(m.from, *m.message);
  }

private:
  std::shared_ptr<worker_neighbours> neighbours_;
  std::unique_ptr<process_ports> ports_;
  std::unique_ptr<worker_core> core_;
  incarnation_id director_;
};

caf::behavior worker(caf::stateful_actor<worker_state>* self, const worker_parts& parts) {
  auto& state = self->state;
  state.begin(self, parts);
  return {
      [&state](const control_received& m) { state.on_control(m); },
      [&state](const bulk_received& m) { state.core().on_state_received(m.from, m.transfer, m.result); },
      [&state](const path_lost& m) { state.core().on_peer_lost(m.peer, m.cause); },
      [&state](const prefetcher_restarted& m) { state.core().on_prefetcher_restarted(m.cause); },
      [&state](const worker_restarted& m) { state.core().on_restarted(m.generation); },
      [&state](tick) { state.core().report_progress(); },
      [self](const fail_now& m) { self->quit(to_caf(m.cause)); },
  };
}

} // namespace

caf::actor spawn_worker(caf::actor_system& system, const worker_parts& parts) {
  return system.spawn(worker, parts);
}

} // namespace troupe
