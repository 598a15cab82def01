// UCX worker: the UCP context and worker of a process, and the descriptor that wakes it.
//
// Owns:     context, worker, and a duplicate of the wake-up descriptor (handed to Asio).
// Runs on:  the event loop.
// Fails:    errc::bad_argument when the settings name what this machine has not.
// Why:      docs/design/0012-ucx-paths.md
#pragma once

#include <memory>
#include <string>

#include <ucp/api/ucp.h>

#include "runtime/base/error.hpp"
#include "runtime/seams/transport.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe {

class ucx_worker {
public:
  static expected<std::unique_ptr<ucx_worker>> open(const ucx_settings& settings);
  ~ucx_worker();
  ucx_worker(const ucx_worker&) = delete;
  ucx_worker& operator=(const ucx_worker&) = delete;

  [[nodiscard]] ucp_worker_h handle() const { return worker_; }
  [[nodiscard]] const peer_address& address() const { return address_; }
  [[nodiscard]] int release_wakeup_fd(); // a duplicate, owned by the caller; -1 afterwards
  void on_active_message(unsigned id, ucp_am_recv_callback_t callback, void* argument);
  unsigned progress() { return ucp_worker_progress(worker_); }
  [[nodiscard]] bool arm(); // false: there is more to progress first

private:
  ucx_worker() = default;
  ucs_status_t open_context(const ucx_settings& settings);
  ucs_status_t open_worker();
  ucp_context_h context_{nullptr};
  ucp_worker_h worker_{nullptr};
  int wakeup_fd_{-1};
  peer_address address_;
};

} // namespace troupe
