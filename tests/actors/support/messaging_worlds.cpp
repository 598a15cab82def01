#include <array>
#include <map>
#include <optional>

#include "runtime/sim/sim_environment.hpp"
#include "tests/actors/support/driver.hpp"
#include "tests/actors/support/messaging_world.hpp"
#include "tests/actors/support/mortal_transport.hpp"
#include "tests/support/asio_loop.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {
namespace {

constexpr std::size_t in_flight_bytes_max = 1U << 20;
constexpr auto deadline = std::chrono::seconds{20};

// --- real time: one event loop, real or loopback transports -----------------------------------------------

class real_world : public messaging_world {
public:
  explicit real_world(const codec_table& codecs)
      : codecs_{codecs} {}

  messaging_process& start(const post_office_settings& settings) override {
    auto one = std::make_unique<member>();
    one->turns = std::make_unique<gated_executor>(loop_.queue);
    one->network = std::make_unique<mortal_transport>(open(random_id_from<incarnation_id>(loop_.random)));
    one->process = std::make_unique<messaging_process>(
        messaging_process::outside{*one->turns, loop_.clock, log_, *one->network}, codecs_, settings);
    auto& made = *one->process;
    members_.emplace(&made, std::move(one));
    return made;
  }
  void kill(messaging_process& victim) override {
    const auto node = members_.extract(&victim);
    const auto id = victim.id();
    auto network = node.mapped()->network->die(); // MT-2
    end(id, std::move(network));
  }
  void freeze(messaging_process& whom) override {
    members_.at(&whom)->network->freeze();
    members_.at(&whom)->turns->freeze();
  }
  void thaw(messaging_process& whom) override {
    members_.at(&whom)->turns->thaw();
    members_.at(&whom)->network->thaw();
  }
  bool run_until(const std::function<bool()>& happened) override {
    return loop_.run_until(happened, deadline);
  }

protected:
  [[nodiscard]] virtual std::unique_ptr<transport> open(incarnation_id self) = 0;
  virtual void end(incarnation_id who, std::unique_ptr<transport> network) = 0;
  void close() { members_.clear(); } // before what the transports stand on
  asio_loop loop_;

private:
  struct member {
    std::unique_ptr<gated_executor> turns;
    std::unique_ptr<mortal_transport> network;
    std::unique_ptr<messaging_process> process;
  };
  const codec_table& codecs_;
  memory_log log_;
  std::map<messaging_process*, std::unique_ptr<member>> members_;
};

class loopback_world final : public real_world {
public:
  using real_world::real_world;
  ~loopback_world() override { close(); }

private:
  std::unique_ptr<transport> open(incarnation_id self) override { return hub_.open(self); }
  void end(incarnation_id, std::unique_ptr<transport> network) override { network.reset(); }
  loopback_hub hub_{loop_.queue, {.in_flight_bytes_max = in_flight_bytes_max, .bulk_piece_bytes = 1U << 20}};
};

class ucx_world final : public real_world {
public:
  ucx_world(const codec_table& codecs, bool shared_memory)
      : real_world{codecs}
      , shared_memory_{shared_memory} {}
  ~ucx_world() override {
    close();
    ghosts_.clear();
  }
  bool tells_of_death() const override { return !shared_memory_; }

private:
  std::unique_ptr<transport> open(incarnation_id self) override {
    ucx_settings settings;
    settings.in_flight_bytes_max = in_flight_bytes_max;
    if (shared_memory_) {
      settings.transports = "shm,tcp";
      settings.options = {{"SYSV_ERROR_HANDLING", "y"}, {"POSIX_ERROR_HANDLING", "y"}};
    }
    auto opened = ucx_transport::open(loop_.context, loop_.clock, self, settings);
    known_.push_back(self);
    opened.value()->set_job(world_job, path_secret{path_secret::key{std::byte{9}}});
    return std::move(opened.value());
  }
  // Over tcp the kernel closes a dead process's connections, without a word. Its shared memory stays as it
  // is, and the process whose id stands in it lives on, here: nobody notices, so the transport is kept.
  void end(incarnation_id, std::unique_ptr<transport> network) override {
    if (shared_memory_) return ghosts_.push_back(std::move(network));
    for (const auto& peer : known_)
      network->drop(peer);
    network.reset();
  }
  bool shared_memory_;
  std::vector<incarnation_id> known_; // every process that ever was
  std::vector<std::unique_ptr<transport>> ghosts_;
};

// --- virtual time -----------------------------------------------------------------------------------------

class sim_messaging_world final : public messaging_world {
public:
  explicit sim_messaging_world(const codec_table& codecs)
      : codecs_{codecs}
      , machine_{1, {}, {.in_flight_bytes_max = in_flight_bytes_max}} {}

  messaging_process& start(const post_office_settings& settings) override {
    messaging_process* made = nullptr;
    const auto& process = machine_.world.start({}, duration{0}, [&](sim_process& here) {
      auto host = std::make_unique<member>(machine_, here, codecs_, settings);
      made = &host->process;
      return host;
    });
    (void)run_until([&] { return made != nullptr; });
    pids_[made] = process.pid();
    return *made;
  }
  void kill(messaging_process& victim) override {
    machine_.world.kill(pids_.extract(&victim).mapped(), 9);
    (void)machine_.world.run_until([] { return true; }, 1); // its memory goes between two tasks
  }
  void freeze(messaging_process& whom) override { machine_.world.pause(pids_.at(&whom), true); }
  void thaw(messaging_process& whom) override { machine_.world.pause(pids_.at(&whom), false); }
  bool run_until(const std::function<bool()>& happened) override {
    const auto end = machine_.world.now() + deadline;
    (void)machine_.world.run_until([&] { return happened() || machine_.world.now() > end; }, events_max);
    return happened();
  }

private:
  static constexpr std::uint64_t events_max = 3'000'000;
  struct member final : sim_program {
    member(sim_machine& machine, sim_process& here, const codec_table& codecs,
           const post_office_settings& settings)
        : seams{machine, here}
        , process{{seams.env().loop, seams.env().clock, seams.env().log, seams.env().network},
                  codecs,
                  settings} {}
    sim_environment seams;
    messaging_process process;
  };
  const codec_table& codecs_;
  sim_machine machine_;
  std::map<messaging_process*, std::int64_t> pids_;
};

} // namespace

std::vector<world_kind> messaging_worlds() {
  return {{"loopback", [](const codec_table& codecs) { return std::make_unique<loopback_world>(codecs); }},
          {"UCX/tcp", [](const codec_table& codecs) { return std::make_unique<ucx_world>(codecs, false); }},
          {"UCX/shm", [](const codec_table& codecs) { return std::make_unique<ucx_world>(codecs, true); }},
          {"simulation",
           [](const codec_table& codecs) { return std::make_unique<sim_messaging_world>(codecs); }}};
}

} // namespace troupe::test
