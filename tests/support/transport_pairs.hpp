// Two connected ends of each transport, for the contract that every transport keeps.
#pragma once

#include <memory>
#include <utility>

#include "runtime/session/session_transport.hpp"
#include "tests/support/asio_loop.hpp"
#include "tests/support/recording_listener.hpp"
#include "transports/loopback/loopback_transport.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {

inline constexpr std::size_t pair_in_flight_bytes_max = 1U << 20;

struct transport_pair {
  asio_loop loop;
  recording_listener at_a, at_b;
  std::unique_ptr<transport> a, b;

  [[nodiscard]] incarnation_id fresh() { return random_id_from<incarnation_id>(loop.random); }
  void connect() { (void)a->connect(b->self(), b->local_address()); }
  void destroy(std::unique_ptr<transport>& end) { end.reset(); }

protected:
  void listen() {
    a->set_listener(&at_a);
    b->set_listener(&at_b);
  }
};

struct loopback_pair : transport_pair {
  loopback_hub hub{loop.queue,
                   {.in_flight_bytes_max = pair_in_flight_bytes_max, .bulk_piece_bytes = 1U << 20}};
  loopback_pair() {
    a = hub.open(fresh());
    b = hub.open(fresh());
    listen();
  }
};

struct ucx_pair : transport_pair {
  static constexpr job_id job{1, 2};
  ucx_pair() {
    a = make();
    b = make();
    listen();
  }
  [[nodiscard]] static path_secret secret() { return path_secret{path_secret::key{std::byte{7}}}; }
  [[nodiscard]] std::unique_ptr<ucx_transport> make(job_id of = job, const path_secret& with = secret()) {
    ucx_settings settings;
    settings.in_flight_bytes_max = pair_in_flight_bytes_max;
    auto opened = ucx_transport::open(loop.context, loop.clock, fresh(), settings);
    opened.value()->set_job(of, with);
    return std::move(opened.value());
  }
};

// The same ends under sessions: a path that fails is opened again.
template <class Below>
struct session_pair : Below {
  std::unique_ptr<transport> below_a, below_b;
  explicit session_pair(session_settings settings = {.connect_for = std::chrono::seconds{2},
                                                     .window_bytes = pair_in_flight_bytes_max}) {
    below_a = std::move(this->a);
    below_b = std::move(this->b);
    this->a = over(*below_a, settings);
    this->b = over(*below_b, settings);
    this->listen();
  }
  ~session_pair() { // before what they stand on
    this->a.reset();
    this->b.reset();
  }
  void destroy(std::unique_ptr<transport>& end) {
    end.reset();
    (&end == &this->a ? below_a : below_b).reset();
  }
  [[nodiscard]] std::unique_ptr<session_transport> over(transport& below, session_settings settings) {
    return std::make_unique<session_transport>(this->loop.queue, this->loop.clock, below, settings);
  }
  [[nodiscard]] const session_counters& counted_a() const {
    return static_cast<const session_transport&>(*this->a).counters();
  }
  [[nodiscard]] const session_counters& counted_b() const {
    return static_cast<const session_transport&>(*this->b).counters();
  }
};
using session_loopback_pair = session_pair<loopback_pair>;
using session_ucx_pair = session_pair<ucx_pair>;

} // namespace troupe::test
