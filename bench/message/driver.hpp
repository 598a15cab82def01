// The two actors of a measurement, for any system that carries actor messages: the driver measures, the
// echo answers. What differs between systems is the types of the messages (`Words`).
//
// Flow:     driver -> ping -> echo -> ping -> driver; driver -> piece... -> echo -> ack -> driver
// Where the system gives credit, the driver sends what it has credit for, and asks to be told of more. A
// piece that comes back all the same is counted, and sent again once the echo has acknowledged something; if
// nothing is under way any more, at the next turn. The window shrinks to what was taken, and grows slowly.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include <caf/all.hpp>

#include "bench/message/program.hpp"

namespace troupe::bench {

struct driver_outcome {
  program_result result;
  caf::actor echo;
  std::string failure; // empty: measured
  std::uint64_t came_back{0};
};
using driver_done = std::function<void(driver_outcome)>;

// How a system says how much may be sent to the echo. Empty: it does not say.
struct driver_credit {
  std::function<std::uint64_t(const caf::actor& to)> now;
  std::function<void(const caf::actor& to, const caf::actor& who)>
      when_ready; // then `on_ready` of the driver
};

// Of the driver alone.
struct resume_stream {
  static constexpr std::string_view wire_name = "bench.resume_stream";
};

inline constexpr std::uint64_t window_growth = 4; // pieces, at each acknowledgement

template <class Words>
class driver_state {
public:
  void start(caf::event_based_actor* self, const program_options& options, caf::actor echo, driver_done done,
             driver_credit credit = {}) {
    self_ = self;
    credit_ = std::move(credit);
    options_ = options;
    outcome_.echo = std::move(echo);
    done_ = std::move(done);
    outcome_.result.half_rtt_us.reserve(options.round_trips);
    ping();
  }

  void on_ping() {
    const auto now = bench_clock::now();
    if (++answered_ > options_.warm_up())
      outcome_.result.half_rtt_us.push_back(std::chrono::duration<double, std::micro>(now - left_).count() /
                                            2);
    if (answered_ == options_.warm_up()) allocations_ = allocations_now();
    if (answered_ < options_.warm_up() + options_.round_trips) return ping();
    counts_.round_trip = per_message(options_.round_trips);
    self_->send(outcome_.echo, typename Words::begin{options_.stream});
    allocations_ = allocations_now();
    pump();
  }
  void on_ack(std::uint64_t received) {
    acknowledged_ = received;
    held_ = false;
    window_ = std::min(stream_window, window_ + window_growth);
    pump();
  }
  void on_returned() {
    ++outcome_.came_back;
    held_ = true;
    window_ = std::max(stream_window_min, std::min(window_, under_way()));
    if (under_way() == 0) self_->send(self_, resume_stream{});
  }
  void on_resume() {
    held_ = false;
    pump();
  }
  void on_ready() {
    waits_ = false;
    pump();
  }
  void on_finished(double seconds, double allocations) {
    counts_.sender = per_message(options_.stream);
    counts_.receiver = allocations;
    if (allocations_) outcome_.result.allocations = counts_;
    outcome_.result.stream_s = seconds;
    end();
  }
  void fail(std::string why) {
    outcome_.failure = std::move(why);
    end();
  }

private:
  void ping() {
    left_ = bench_clock::now();
    self_->send(outcome_.echo, typename Words::ping{answered_});
  }
  void pump() {
    if (waits_) return;
    auto room = credit_.now ? credit_.now(outcome_.echo) : options_.stream;
    typename Words::piece piece{};
    for (; !held_ && room > 0 && wants_to_send(); --room) {
      piece.number = static_cast<std::uint32_t>(sent_++);
      self_->send(outcome_.echo, piece);
    }
    waits_ = room == 0 && credit_.when_ready && wants_to_send();
    if (waits_) credit_.when_ready(outcome_.echo, self_);
  }
  [[nodiscard]] bool wants_to_send() const {
    return under_way() < window_ && sent_ - outcome_.came_back < options_.stream;
  }
  [[nodiscard]] std::uint64_t under_way() const { return sent_ - outcome_.came_back - acknowledged_; }
  double per_message(std::uint64_t messages) const {
    const auto now = allocations_now();
    if (!now || !allocations_) return 0;
    return static_cast<double>(*now - *allocations_) / static_cast<double>(messages);
  }
  void end() {
    if (done_) std::exchange(done_, nullptr)(std::move(outcome_));
  }

  caf::event_based_actor* self_{nullptr};
  program_options options_;
  driver_outcome outcome_;
  driver_done done_;
  bench_clock::time_point left_;
  std::uint64_t answered_{0}, sent_{0}, acknowledged_{0};
  std::uint64_t window_{stream_window};
  bool held_{false};  // pieces came back
  bool waits_{false}; // for credit
  driver_credit credit_;
  std::optional<std::uint64_t> allocations_;
  allocation_counts counts_;
};

// Acknowledges what it has received; tells the time from the first piece to the last.
template <class Words>
class echo_state {
public:
  void begin(std::uint64_t pieces) {
    pieces_ = pieces;
    received_ = 0;
  }
  void on_piece(caf::event_based_actor* self, const caf::actor& driver) {
    if (++received_ == 1) {
      first_ = bench_clock::now();
      allocations_ = allocations_now();
    }
    if (received_ < pieces_) {
      if (received_ % stream_ack_every == 0) self->send(driver, typename Words::ack{received_});
      return;
    }
    const auto seconds = seconds_since(first_);
    const auto now = allocations_now();
    const double each =
        now && allocations_ ? static_cast<double>(*now - *allocations_) / static_cast<double>(pieces_) : 0;
    self->send(driver, typename Words::finished{seconds, each});
  }

private:
  std::uint64_t pieces_{0}, received_{0};
  bench_clock::time_point first_;
  std::optional<std::uint64_t> allocations_;
};

// The handlers that both systems have in common.
template <class Words>
caf::message_handler driver_handlers(const std::shared_ptr<driver_state<Words>>& state) {
  return {
      [state](const typename Words::ping&) { state->on_ping(); },
      [state](const typename Words::ack& what) { state->on_ack(what.received); },
      [state](const resume_stream&) { state->on_resume(); },
      [state](const typename Words::finished& what) { state->on_finished(what.seconds, what.allocations); },
  };
}

template <class Words>
caf::message_handler echo_handlers(caf::event_based_actor* self, const caf::actor& driver) {
  auto state = std::make_shared<echo_state<Words>>();
  return {
      [self, driver](const typename Words::ping& what) { self->send(driver, what); },
      [state](const typename Words::begin& what) { state->begin(what.pieces); },
      [self, driver, state](const typename Words::piece&) { state->on_piece(self, driver); },
  };
}

} // namespace troupe::bench
