// UCX engine: what ucx_transport is made of. Private to this room.
//
// A turn of the loop (`pump`): progress UCX, do what its callbacks recorded (UX-5), then, where UCX was
// quiet, arm the wake-up descriptor and wait, or pause. `kick` asks for another turn.
//
// Life of a path: connecting -> open -> (lingering) -> draining -> gone.
//   connecting  hellos are on their way; ends once each side has heard and confirmed the other's, or at the
//               deadline. Nothing is sent before: during UCX's wire-up a later frame can overtake an earlier
//               one. A close meanwhile is said once the path is open, if that is within the linger time-out.
//   lingering   a goodbye was said; ends with theirs, with an error, or after the linger time-out.
//   draining    endpoint closed by force; ends once every request has come back (UX-4).
// A hello leaves only where UCX takes it at once, so UCX holds nothing of a path that is not connected yet.
// The confirmation is what makes UCX wire the endpoint up, over connections that stand both ways then (UX-8).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/dead_incarnations.hpp"
#include "runtime/base/task.hpp"
#include "transports/ucx/connection.hpp"
#include "transports/ucx/send_pool.hpp"
#include "transports/ucx/ucx_transport.hpp"
#include "transports/ucx/ucx_worker.hpp"

namespace troupe {

class ucx_engine final : public std::enable_shared_from_this<ucx_engine> {
public:
  ucx_engine(boost::asio::io_context& loop, clock_seam& clock, incarnation_id self, ucx_settings settings,
             std::unique_ptr<ucx_worker> worker);
  void schedule(); // the next turn, as soon as the loop gets to it
  bool look();     // as ucx_transport::look
  void stop();

  void set_job(job_id job, const path_secret& secret); // what came earlier is heard now
  void set_listener(transport_listener* listener) { listener_ = listener; }
  [[nodiscard]] const peer_address& local_address() const { return worker_->address(); }
  [[nodiscard]] incarnation_id self() const { return self_; }
  [[nodiscard]] const ucx_counters& counters() const { return counters_; }
  [[nodiscard]] bool idle() const { return connections_.empty(); }
  [[nodiscard]] std::string lanes(incarnation_id peer) const;
  expected<void> connect(incarnation_id peer, const peer_address& address);
  expected<void> send(incarnation_id peer, std::span<const std::byte> payload);
  void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                 bulk_done done);
  void close(incarnation_id peer);
  void drop(incarnation_id peer);

private:
  struct proved_hello { // the fields of a hello that count once it is proved
    incarnation_id from;
    std::uint64_t path, answers, heard;
  };

  // engine.cpp: turns of the loop
  void pump();
  void kick();
  void next_turn();
  void schedule_behind();
  void wait();
  void pause();
  void later(task work); // after the callbacks of this turn, or in the next one
  void run_deferred();
  void await_drained();

  // engine.cpp: life of a path
  ucx_connection& add_connection(incarnation_id peer, peer_address address);
  [[nodiscard]] ucx_connection* find(incarnation_id peer) const;
  [[nodiscard]] ucx_connection* find(std::uint64_t id) const;
  void begin(ucx_connection& path);
  void open_later(ucx_connection& path);
  void open_when_heard(ucx_connection& path);
  void lose(ucx_connection& path, error cause);
  void lose_later(ucx_connection& path, std::string_view during, ucs_status_t status);
  void say_goodbye(ucx_connection& path);
  void drain(ucx_connection& path);
  void unlist(ucx_connection& path);
  void bury(incarnation_id peer);
  void close_endpoint(ucx_connection& path);
  [[nodiscard]] error end_of(const ucx_connection& path) const;
  void announce_loss(ucx_connection& path);
  void tell_loss(ucx_connection& path);
  [[nodiscard]] bool gone(ucx_connection& path);
  void set_timer(ucx_connection& path, duration delay);
  void on_timer(ucx_connection& path);
  void cancel_timer(ucx_connection& path);
  static void on_endpoint_error(void* path, ucp_ep_h endpoint, ucs_status_t status);
  static void on_endpoint_closed(void* request, ucs_status_t status, void* path);

  // engine_messages.cpp: frames
  send_slot* make_frame(ucx_connection& path, frame_kind kind, std::span<const std::byte> first,
                        std::span<const std::byte> second, bool owed);
  void submit(ucx_connection& path, send_slot* slot);
  void post(send_slot* slot, std::uint32_t attributes = 0);
  void sent(send_slot* slot, ucs_status_t status);
  void flush_queue(ucx_connection& path);
  void drop_queue(ucx_connection& path);
  void release(ucx_connection& path, send_slot* slot);
  void make_hello(ucx_connection& path);
  [[nodiscard]] bool greet(ucx_connection& path);
  void answer(ucx_connection& path);
  void send_owed(ucx_connection& path, frame_kind kind, std::span<const std::byte> body);
  void receive(std::span<const std::byte> bytes);
  void receive_on_path(ucx_connection& path, const frame_view& frame);
  void receive_hello(const frame_view& frame);
  void answer_hello(const proved_hello& said, peer_address address);
  void note_heard(incarnation_id from, std::uint64_t number);
  [[nodiscard]] std::uint64_t newest_heard(incarnation_id from) const;
  void receive_message(ucx_connection& path, std::span<const std::byte> payload);
  void receive_goodbye(ucx_connection& path);
  void count_fault(frame_fault fault);
  static void on_frame_sent(void* request, ucs_status_t status, void* slot);
  static ucs_status_t on_frame(void* engine, const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* param);

  // bulk_out.cpp
  void receive_bulk_answer(ucx_connection& path, frame_kind kind, const bulk_body& body);
  void send_pieces(outgoing_bulk& bulk);
  void send_piece(outgoing_bulk& bulk, outgoing_piece& piece);
  [[nodiscard]] bool asks(outgoing_bulk& bulk, std::size_t end) const;
  [[nodiscard]] std::size_t bulk_window() const;
  void go_on(std::uint64_t path, std::uint64_t transfer);
  [[nodiscard]] bool pieces_whole() const { return settings_.transports == "tcp"; }
  void piece_sent(outgoing_piece& piece, ucs_status_t status);
  void settle(outgoing_bulk& bulk);
  void fail_outgoing(ucx_connection& path, const error& cause);
  static void on_piece_sent(void* request, ucs_status_t status, void* piece);

  // bulk_in.cpp
  void receive_announcement(ucx_connection& path, const bulk_body& body);
  ucs_status_t receive_piece(std::span<const std::byte> header, void* data, std::size_t bytes, bool whole);
  void piece_received(incoming_bulk& bulk, std::size_t bytes, bool asks, ucs_status_t status);
  void release_incoming(ucx_connection& path, const error& cause);
  [[nodiscard]] static bool receiving(const ucx_connection& path);
  static ucs_status_t on_piece(void* engine, const void* header, std::size_t header_bytes, void* data,
                               std::size_t bytes, const ucp_am_recv_param_t* param);
  static void on_piece_received(void* request, ucs_status_t status, std::size_t bytes, void* bulk);

  boost::asio::io_context& loop_;
  clock_seam& clock_;
  incarnation_id self_;
  job_id job_;
  path_secret secret_;
  ucx_settings settings_;
  std::unique_ptr<ucx_worker> worker_;
  boost::asio::posix::stream_descriptor wakeup_;
  transport_listener* listener_{nullptr};
  ucx_counters counters_;
  send_pool pool_;
  touched_memory aligned_; // for a payload that UCX hands over misaligned

  std::unordered_map<std::uint64_t, std::unique_ptr<ucx_connection>> connections_;
  std::unordered_map<incarnation_id, ucx_connection*> by_peer_; // connecting, open or lingering
  std::vector<ucx_connection*> greeting_;                       // UCX has not taken their hello
  std::vector<ucx_connection*> draining_;
  dead_incarnations dead_;                                  // closed, or gone with a goodbye
  std::unordered_map<incarnation_id, std::uint64_t> heard_; // newest path of each of the others
  std::uint64_t last_id_{0};

  std::deque<task> deferred_;
  std::size_t hellos_waiting_{0};
  std::vector<std::vector<std::byte>> early_; // hellos that came before the job is known
  bool in_pump_{false};
  bool again_{false};   // another turn at once
  bool waiting_{false}; // for the wake-up descriptor
  bool stopped_{false};
  unsigned idle_turns_{0}; // one after the other in which UCX had nothing to do
  timer_id pause_{0};      // until the next turn
};

} // namespace troupe
