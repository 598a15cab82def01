// Raw UCX: one worker, one endpoint, active messages; nothing between them and the caller.
//
// The same lanes, options of error handling and wake mode as the transport of this build, so that what is
// measured beside it is what it costs. Waiting: `sleep` arms the worker and waits on its descriptor with
// epoll; `poll` only progresses.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ucp/api/ucp.h>

#include "bench/message/program.hpp"
#include "runtime/base/error.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe::bench {

enum class raw_kind : unsigned { ping = 1, piece, bulk, done };

// Counts of what has arrived, by kind; and when the stream's first and newest piece did.
struct raw_arrivals {
  std::array<std::uint64_t, 5> count{};
  bench_clock::time_point first_piece, newest_piece;

  [[nodiscard]] std::uint64_t of(raw_kind kind) const { return count[static_cast<unsigned>(kind)]; }
};

class raw_path {
public:
  static expected<std::unique_ptr<raw_path>> open(const program_options& options);
  ~raw_path();
  raw_path(const raw_path&) = delete;
  raw_path& operator=(const raw_path&) = delete;

  [[nodiscard]] std::string address() const;
  expected<void> connect(const std::string& address);
  // Leaves at once; UCX reads `bytes` until `sending()` has gone down again.
  void send(raw_kind kind, std::span<const std::byte> bytes);
  // Progresses until `done` holds; false: the path has failed.
  template <class Done>
  [[nodiscard]] bool wait(Done done) {
    while (!done()) {
      if (failed_) return false;
      if (ucp_worker_progress(worker_) == 0 && sleeps_) sleep();
    }
    return true;
  }
  [[nodiscard]] std::size_t sending() const { return sending_; }
  [[nodiscard]] const raw_arrivals& arrived() const { return arrived_; }
  [[nodiscard]] error failure() const;

private:
  explicit raw_path(bool sleeps)
      : sleeps_{sleeps} {}
  ucs_status_t open_context(const program_options& options);
  ucs_status_t open_worker();
  void handle(raw_kind kind, ucp_am_recv_callback_t callback);
  void sleep();
  ucs_status_t receive_bulk(void* descriptor, std::size_t bytes);
  template <raw_kind Kind>
  static ucs_status_t on_message(void* path, const void*, std::size_t, void* data, std::size_t bytes,
                                 const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* path);
  static void on_bulk(void* request, ucs_status_t status, std::size_t bytes, void* path);
  static void on_error(void* path, ucp_ep_h, ucs_status_t status);

  bool sleeps_;
  ucs_status_t failed_{UCS_OK};
  ucp_context_h context_{nullptr};
  ucp_worker_h worker_{nullptr};
  ucp_ep_h endpoint_{nullptr};
  unique_fd epoll_;
  std::size_t sending_{0};
  raw_arrivals arrived_;
  std::array<std::vector<std::byte>, bulk_window> rooms_;
  std::size_t next_room_{0};
};

} // namespace troupe::bench
