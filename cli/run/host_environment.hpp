// Host environment: the real seams of one process, composed once.
//
// Owns:     the event loop, the threads, the transport, the collective; all that an `environment` refers to.
// Fails:    errc::bad_argument, storage_failed: what the machine refuses, in one line.
#pragma once

#include <memory>
#include <optional>

#include "cli/run/host_collectives.hpp"
#include "cli/run/host_gpu.hpp"
#include "runtime/host/cpu_device.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_entropy.hpp"
#include "runtime/host/host_own_process.hpp"
#include "runtime/host/host_process.hpp"
#include "runtime/host/posix_storage.hpp"
#include "runtime/host/spdlog_sink.hpp"
#include "runtime/host/staging_memfd.hpp"
#include "runtime/host/thread_executor.hpp"
#include "runtime/seams/environment.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe {

class host_environment {
public:
  // `gpu`: what of GPUs is used, if anything; sums are NCCL's then.
  [[nodiscard]] static expected<std::unique_ptr<host_environment>>
  open(log_level quietest, ucx_settings lanes = {}, const std::optional<gpu_use>& gpu = {});
  ~host_environment();

  [[nodiscard]] environment& env() { return *env_; }
  [[nodiscard]] event_loop& loop() { return loop_; }
  [[nodiscard]] ucx_transport& network() { return *network_; }
  [[nodiscard]] host_collectives& collectives() { return collectives_; }
  [[nodiscard]] host_entropy& random() { return random_; }
  [[nodiscard]] host_clock& clock() { return clock_; }
  [[nodiscard]] staging& stage() { return stage_; }
  void set_deadlines(const timeouts& limits); // of a GPU's communicators
  // Lets a GPU's communicators end in order. After `loop().run()`, once nobody uses them.
  void rest_gpu();
  // Let what was posted to these threads finish; the loop no longer runs.
  void finish_reading() { reader_.finish(); }
  void finish_storage() { storage_thread_.finish(); }

private:
  explicit host_environment(log_level quietest)
      : log_{quietest} {}

  spdlog_sink log_;
  event_loop loop_;
  host_clock clock_{loop_};
  host_entropy random_;
  posix_storage files_;
  memfd_staging stage_;
  host_own_process self_;
  std::shared_ptr<black_box> box_;
  host_process processes_{loop_};
  thread_executor lane_{"troupe-sums"}; // parts of sums, while the device computes
  std::unique_ptr<ucx_transport> network_;
  std::unique_ptr<host_gpu> gpu_; // outlives the thread that calls it
  cpu_device compute_;
  host_collectives collectives_{loop_, compute_.queue(), lane_};
  thread_executor reader_{"troupe-reader"};
  thread_executor storage_thread_{"troupe-storage", thread_executor::urgency::background};
  std::unique_ptr<environment> env_;
};

} // namespace troupe
