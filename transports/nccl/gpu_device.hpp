// GPU device: the device seam on one GPU, and the shell around its communicators' life.
//
// Flow:     communicator: join, abort, leave -> [gpu_device] -> comm_life -> orders -> gpu
// Owns:     the communicators' handles; memory of the device, and pinned memory of the host, which it lends
//           to one generation after another.
// Runs on:  orders and looks on the owner thread; deadlines on the event loop; an abort on a thread of its
//           own that may never come back. Nothing on the first two waits for the device or for a peer.
// Fails:    as comm_life says; where it gives up, `end_process` gets the reason.
// Invariants: NC-1 to NC-9 (comm_life.hpp, gpu.hpp); further
//   NC-10   work is looked at, never waited for: eagerly at first, then spaced by the clock seam.
//   NC-11   lent memory stays where it is until it is given back; the device frees it between generations.
// Why:      docs/design/0037-collectives-on-gpus.md
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/device.hpp"
#include "runtime/seams/executor.hpp"
#include "transports/nccl/comm_life.hpp"
#include "transports/nccl/gpu.hpp"
#include "transports/nccl/limits.hpp"

namespace troupe {

struct gpu_surroundings {
  executor& owner; // the one thread of the device
  executor& loop;  // where the clock's timers fire
  clock_seam& clock;
  std::function<void(task)> spawn;                     // on a thread of its own
  std::function<void(const std::string&)> end_process; // the last resort; any thread
};

struct gpu_settings {
  std::string name; // "cuda:0"
  life_settings life;
  // What a rank contributes to sums, and their result, is memory of the host, from and to which the device
  // copies; else of the device.
  bool sums_of_host{false};
  std::uint32_t eager_looks{limits::nccl_eager_looks_max};
  duration look_interval{limits::nccl_look_interval};
};

// A generation's communicator, as the device sees it. All on the owner thread.
class gpu_member {
public:
  virtual ~gpu_member() = default;
  // The communicator of sums; that of general operations, where it was asked for.
  virtual void ready(std::span<const nccl::comm> on) = 0;
  virtual void poison(const error& why) = 0; // may come twice
  // Goes on with what is under way; false when nothing is.
  [[nodiscard]] virtual bool look() = 0;
};

// How a generation's communicators begin.
struct comm_request {
  generation_id generation;
  std::size_t communicators{1};
  std::vector<nccl::unique_id> ids{}; // of fresh ones, one each
  std::uint32_t world{1};
  std::uint32_t rank{0};
  life_origin origin{life_origin::fresh};
  std::vector<int> without{}; // of shrunk ones: ranks of the parent that are gone
};

class gpu_device final : public device, public std::enable_shared_from_this<gpu_device> {
public:
  // `calls` and what surrounds it outlive the last task posted.
  [[nodiscard]] static std::shared_ptr<gpu_device> make(gpu& calls, gpu_surroundings surroundings,
                                                        gpu_settings settings);

  [[nodiscard]] std::string name() const override { return settings_.name; }
  [[nodiscard]] executor& queue() override { return around_.owner; }
  [[nodiscard]] gpu& calls() { return calls_; }
  [[nodiscard]] bool sums_of_host() const { return settings_.sums_of_host; }

  // --- owner thread ---
  // errc::stale_generation. `member` is held until it leaves.
  [[nodiscard]] expected<void> join(comm_request request, std::shared_ptr<gpu_member> member);
  void leave(generation_id generation);
  // errc::aborted: not between a fault and the end of its abort (NC-7); out_of_memory.
  [[nodiscard]] expected<std::byte*> lend(std::size_t bytes, memory_place where = memory_place::device);
  void give_back(std::byte* memory);
  void report(generation_id generation, const nccl_answer& failed); // a call or a look at it failed
  void report(generation_id generation, const error& failed);
  void look_soon(); // something is under way
  void look_anew(); // something new is: eagerly again (NC-10)

  // --- any thread ---
  // Runs on the owner thread, before anything is lent that is asked for later.
  void retire(task work);
  void abort(generation_id generation, const std::string& why) noexcept;
  void set(const life_settings& deadlines); // from the next state on
  [[nodiscard]] bool may_issue(generation_id generation) const;
  [[nodiscard]] life_state state() const;

private:
  gpu_device(gpu& calls, gpu_surroundings surroundings, gpu_settings settings);
  template <class Event>
  void event(const Event& happened);
  void carry_out(const life_orders& orders);
  void carry_out(const life_order& order);
  void begin(const life_order& order);
  [[nodiscard]] nccl_answer begin(const comm_request& what);
  [[nodiscard]] nccl_answer shrink(const comm_request& what);
  // Of all communicators: the first failure; else under way while one is.
  template <class Call>
  [[nodiscard]] static nccl_answer of_all(const std::vector<nccl::comm>& which, Call call);
  void expect_done(generation_id generation, const nccl_answer& answer);
  void start_abort(std::vector<nccl::comm> handles);
  void drain();
  void look();
  [[nodiscard]] bool ask_library();
  void rearm();
  void free_unlent();
  void run_retiring();

  struct block {
    std::size_t bytes{0};
    memory_place where{memory_place::device};
    bool lent{false};
  };

  gpu& calls_;
  gpu_surroundings around_;
  gpu_settings settings_;

  mutable std::mutex mutex_; // guards the next three; held for plain transitions only
  comm_life life_;
  std::uint32_t orders_waiting_{0};
  std::vector<task> retiring_;

  // The owner thread's:
  std::map<generation_id, std::shared_ptr<gpu_member>> members_;
  std::map<generation_id, comm_request> requests_; // not yet begun
  std::vector<nccl::comm> comms_;                  // of the generation; null: not begun
  std::vector<nccl::comm> smaller_;                // while a shrink is under way
  std::map<std::byte*, block> memory_;
  bool looking_{false};
  std::uint32_t looks_{0}; // since something new was under way

  timer_id timer_{0}; // the loop's
};

} // namespace troupe
