// Two connected ends of each transport, for the contract that every transport keeps.
#pragma once

#include <memory>
#include <utility>

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
  [[nodiscard]] std::unique_ptr<ucx_transport> make(job_id of = job) {
    ucx_settings settings;
    settings.in_flight_bytes_max = pair_in_flight_bytes_max;
    auto opened = ucx_transport::open(loop.context, loop.clock, fresh(), settings);
    opened.value()->set_job(of);
    return std::move(opened.value());
  }
};

} // namespace troupe::test
