// Messaging world: several processes, each an actor runtime, a transport and a post office, in one test.
//
// Flow:     test -> [world] -> processes over loopback, UCX or the simulated network; one thread.
// Owns:     the loop (real, or the simulator), the processes, and how each of them ends.
// Fails:    `run_until` is false when its deadline passed: 20 s, virtual in simulation.
// A test says what must happen and waits for it; it asserts no duration, and looks at no transport.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe::test {

inline constexpr job_id world_job{9, 9};

class messaging_process {
public:
  struct outside {
    executor& loop;
    clock_seam& clock;
    log_sink& log;
    transport& network;
  };
  messaging_process(outside here, const codec_table& codecs, const post_office_settings& settings)
      : network_{here.network}
      , id_{here.network.self()}
      , runtime_{here.loop, here.clock, here.log}
      , office_{std::make_unique<post_office>(runtime_, here.network, codecs, settings)} {}
  ~messaging_process() {
    kept_.clear();
    (void)runtime_.stop(); // the last turns of actors may still use the office
    office_.reset();
  }
  messaging_process(const messaging_process&) = delete;
  messaging_process& operator=(const messaging_process&) = delete;

  [[nodiscard]] incarnation_id id() const { return id_; }
  [[nodiscard]] transport& network() { return network_; }
  [[nodiscard]] actor_runtime& runtime() { return runtime_; }
  [[nodiscard]] post_office& office() { return *office_; }
  // Lives as long as the process: a handle kept outside would outlive a process that is killed.
  template <class T>
  T& keep(T value) {
    auto held = std::make_shared<T>(std::move(value));
    kept_.push_back(held);
    return *held;
  }

private:
  transport& network_;
  incarnation_id id_;
  actor_runtime runtime_;
  std::unique_ptr<post_office> office_;
  std::vector<std::shared_ptr<void>> kept_;
};

class messaging_world {
public:
  virtual ~messaging_world() = default;
  [[nodiscard]] virtual messaging_process& start(const post_office_settings& settings = {
                                                     .job = world_job}) = 0;
  // As SIGKILL: without a goodbye, and the process is gone. References to it are stale afterwards.
  virtual void kill(messaging_process& victim) = 0;
  // Its loop does not run: it neither hears nor answers, and its machine sees nothing wrong with it.
  virtual void freeze(messaging_process& whom) = 0;
  virtual void thaw(messaging_process& whom) = 0;
  [[nodiscard]] virtual bool run_until(const std::function<bool()>& happened) = 0;
  // Does the transport itself tell the others of a kill? Where not, only membership's verdict does.
  [[nodiscard]] virtual bool tells_of_death() const { return true; }

  [[nodiscard]] static expected<void> connect(messaging_process& from, messaging_process& to) {
    return from.network().connect(to.id(), to.network().local_address());
  }
};

struct world_kind {
  std::string name;
  std::function<std::unique_ptr<messaging_world>(const codec_table&)> make;
};
// Loopback, UCX over tcp, UCX over shared memory, simulation.
[[nodiscard]] std::vector<world_kind> messaging_worlds();

} // namespace troupe::test
