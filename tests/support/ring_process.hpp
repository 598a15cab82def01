// Ring process: what a rank in a process of its own needs: event loop, sessions over UCX, device, ring.
#pragma once

#include <memory>
#include <thread>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_entropy.hpp"
#include "runtime/host/thread_executor.hpp"
#include "runtime/session/session_transport.hpp"
#include "tests/support/posted_communicator.hpp"
#include "transports/ring/ring_collective.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {

class ring_process {
public:
  explicit ring_process(ring_settings settings = {}, ucx_settings lanes = {}) {
    auto opened =
        ucx_transport::open(loop_.io(), clock_, random_id_from<incarnation_id>(random_), std::move(lanes));
    network_ = std::move(opened.value());
    network_->set_job(job_id{0x7269, 0x6e67}, path_secret{path_secret::key{std::byte{5}}});
    sessions_ = std::make_unique<session_transport>(loop_, clock_, *network_, session_settings{});
    ring_ = std::make_unique<ring_collective>(loop_, device_, settings, &lane_);
    ring_->attach(sessions_.get());
    runner_ = std::thread{[this] { loop_.run(); }};
  }
  ~ring_process() {
    on(loop_, [this] { ring_->attach(nullptr); });
    on(loop_, [this] { sessions_.reset(); });
    loop_.stop();
    runner_.join();
  }
  ring_process(const ring_process&) = delete;
  ring_process& operator=(const ring_process&) = delete;

  [[nodiscard]] collective_member who() const { return {network_->self(), network_->local_address()}; }
  [[nodiscard]] ring_collective& ring() { return *ring_; }
  [[nodiscard]] session_transport& network() { return *sessions_; } // on the loop
  [[nodiscard]] event_loop& loop() { return loop_; }
  [[nodiscard]] executor& device() { return device_; }
  [[nodiscard]] executor& lane() { return lane_; }
  [[nodiscard]] expected<std::unique_ptr<communicator>>
  connect(const std::string& descriptor, const collective_shape& shape, std::uint32_t rank) {
    return connect_posted(device_, *ring_, descriptor, shape, rank_id{rank});
  }

private:
  event_loop loop_;
  host_clock clock_{loop_};
  host_entropy random_;
  thread_executor device_{"ring-device"}, lane_{"ring-lane"};
  std::unique_ptr<ucx_transport> network_;
  std::unique_ptr<session_transport> sessions_;
  std::unique_ptr<ring_collective> ring_;
  std::thread runner_;
};

} // namespace troupe::test
