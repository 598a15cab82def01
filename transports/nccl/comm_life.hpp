// Life of a device's communicators: one generation after another, and what happens when one fails.
//
//   none -> initialising -> ready -> closing -> none                      the orderly way
//                |           |  \-> held -> shrinking -> parting -> ready  survivors go on with a smaller one
//                +-----------+------+--------+-> aborting -> draining -> none
//                                                    \-> stuck: the process ends
//
// Flow:     events with the time they happened -> [comm_life] -> orders, to be carried out in their order
// Owns:     no handle, no thread, no clock: plain values. Copies are independent.
// Runs on:  one thread at a time (nccl_device holds a lock around it).
// Fails:    `failure` says why the last generation ended.
// Invariants:
//   NC-1    an event that names another generation than the one that lives or waits has no effect.
//   NC-2    operations are issued in `ready` only.
//   NC-3    the error is set, and everything pending poisoned, before the abort is ordered.
//   NC-4    every state but `none`, `ready` and `stuck` has a deadline; that of an abort ends the process.
//   NC-5    a communicator is aborted at most once, all of a device in one order, and nothing follows.
//   NC-6    revoked at most once; after that neither finalized nor revoked. Destroyed only after it was
//           finalized; the parent of a shrink is aborted, never destroyed.
//   NC-7    between a fault and the end of its abort no device memory is allocated or freed.
//   NC-9    a call is ordered only where the library has it.
// Why:      docs/design/0037-collectives-on-gpus.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"
#include "transports/nccl/nccl_api.hpp"

namespace troupe {

enum class life_state : std::uint8_t {
  none,         // no communicator
  initialising, // the library meets the other ranks
  ready,        // operations may be issued
  closing,      // finalize is under way
  held,         // failed, and kept so that the next generation can shrink it
  shrinking,    // the library makes the smaller one
  parting,      // the smaller one stands; its parent is being aborted, and the stream comes to rest
  aborting,     // all communicators are being aborted
  draining,     // the stream runs what was issued before the abort
  stuck,        // an abort did not return, or the device is broken: the process ends
};
inline constexpr std::size_t life_states = 10;
[[nodiscard]] std::string_view to_string(life_state state);

enum class life_action : std::uint8_t {
  init,         // begin the generation's communicator, without blocking
  shrink,       // begin it as a part of the one that is held
  revoke,       // stop what is under way on the one that failed, without blocking
  finalize,     // without blocking
  destroy,      // after finalize is complete
  abort_parent, // of a shrink; on an expendable thread
  abort_all,    // every communicator of the device, in one group; on an expendable thread
  drain,        // mark the end of what was issued
  poison,       // everything pending of the generation ends with an error
  announce,     // the generation is ready
  end_process,  // `failure` says why
};

struct life_order {
  life_action what{life_action::init};
  generation_id generation;
  bool operator==(const life_order&) const = default;
};
using life_orders = std::vector<life_order>;

struct life_settings {
  duration init_deadline{std::chrono::seconds{30}};
  duration close_deadline{std::chrono::seconds{5}};
  duration abort_deadline{std::chrono::seconds{10}}; // of the abort, then of the drain
  duration hold_deadline{std::chrono::seconds{10}};
  bool hold_for_shrink{false}; // a failed communicator waits for a smaller next generation
};

// How a generation's communicator comes to be.
enum class life_origin : std::uint8_t { fresh, shrunk };

enum class call_status : std::uint8_t { done, under_way, failed };

class comm_life {
public:
  comm_life(const nccl::features& has, const life_settings& settings)
      : has_{has}
      , settings_{settings} {}

  // --- events ---
  // A later generation than any before (`newest`). Ends the one that lives.
  [[nodiscard]] life_orders begin(time_point now, generation_id generation, life_origin origin);
  // What the library says of the communicator that the state waits for, or works with.
  [[nodiscard]] life_orders status(time_point now, generation_id generation, call_status said,
                                   const std::string& why = {});
  [[nodiscard]] life_orders fault(time_point now, generation_id generation, error why);
  [[nodiscard]] life_orders close(time_point now, generation_id generation);
  [[nodiscard]] life_orders aborted(time_point now, bool clean); // an abort returned
  [[nodiscard]] life_orders drained(time_point now, bool clean);
  [[nodiscard]] life_orders tick(time_point now);

  void set(const life_settings& settings) { settings_ = settings; } // from the next state on

  // --- what is ---
  [[nodiscard]] life_state state() const { return state_; }
  [[nodiscard]] generation_id generation() const { return generation_; } // that lives, or lived last
  [[nodiscard]] generation_id newest() const { return newest_; }         // that was begun, or waits to be
  [[nodiscard]] bool may_issue(generation_id generation) const {         // NC-2
    return state_ == life_state::ready && generation == generation_;
  }
  [[nodiscard]] bool may_allocate() const; // NC-7
  // Lives, or waits to live.
  [[nodiscard]] bool expects(generation_id generation) const;
  // The library's answer is waited for.
  [[nodiscard]] bool asks_status() const;
  // The end of what was issued before an abort is waited for.
  [[nodiscard]] bool asks_drain() const { return drains_; }
  [[nodiscard]] std::optional<time_point> deadline() const { return deadline_; }
  [[nodiscard]] const error& failure() const { return failure_; }

private:
  struct request {
    generation_id generation;
    life_origin origin{life_origin::fresh};
  };
  void enter(life_state state, std::optional<duration> limit, time_point now);
  void start(time_point now, request what, life_orders& orders);
  void start_shrink(time_point now, generation_id generation, life_orders& orders);
  void leave(time_point now, life_orders& orders); // to `none`, or on to what waits
  void fail(time_point now, error why, life_orders& orders);
  void hold(time_point now, life_orders& orders);
  void abort(time_point now, life_orders& orders);
  void give_up(error why, life_orders& orders);
  void drop_wanted(life_orders& orders);
  void begin_in_held(time_point now, request what, life_orders& orders);
  void order(life_orders& orders, life_action what) const { orders.push_back({what, generation_}); }

  nccl::features has_;
  life_settings settings_;
  life_state state_{life_state::none};
  generation_id generation_;
  generation_id newest_;
  std::optional<request> wanted_;
  std::optional<time_point> deadline_;
  error failure_{errc::aborted, "no generation has begun"};
  bool drains_{false};
  bool quiet_{false};          // held: nothing runs on it any more
  bool failed_parting_{false}; // the smaller one failed before its parent was gone
};

} // namespace troupe
