#include "bench/message/urgent_trips.hpp"

#include <array>
#include <limits>
#include <utility>

#include "runtime/wire/codec.hpp"

namespace troupe::bench {
namespace {

constexpr std::uint64_t urgent_type = wire_type_of("bench.urgent");
constexpr std::array<std::byte, ping_bytes> urgent_body{};

} // namespace

urgent_trips::urgent_trips(post_office& office, clock_seam& clock, incarnation_id peer, std::uint64_t trips,
                           over done)
    : office_{office}
    , clock_{clock}
    , peer_{peer}
    , trips_{trips}
    , done_{std::move(done)}
    , transfer_{std::numeric_limits<std::uint64_t>::max()} {
  times_.idle_us.reserve(trips_);
  times_.beside_bulk_us.reserve(trips_);
  office_.set_control_handler(
      [this](incarnation_id, std::uint64_t, std::span<const std::byte>) { on_answer(); });
}

void urgent_trips::leave() {
  left_beside_ = under_way_ ? transfer_ : 0;
  left_ = bench_clock::now();
  if (auto sent = office_.send_control(peer_, urgent_type, urgent_body); !sent) end(sent.failure());
}

void urgent_trips::on_answer() {
  const auto half_us = seconds_since(left_) * 1e6 / 2;
  const bool idle = times_.idle_us.size() < trips_;
  if (idle)
    times_.idle_us.push_back(half_us);
  else if (under_way_ && left_beside_ == transfer_)
    times_.beside_bulk_us.push_back(half_us);
  if (times_.beside_bulk_us.size() == trips_) return; // ends with the transfer
  if (times_.idle_us.size() == trips_ && !under_way_) send_large();
  clock_.call_after(urgent_pause, [this] { leave(); });
}

void urgent_trips::send_large() {
  large_.resize(large_bulk_bytes, std::byte{1});
  under_way_ = true;
  office_.send_bulk(peer_, --transfer_, large_, [this](const expected<void>& result) {
    under_way_ = false;
    if (!result) return end(result.failure());
    if (times_.beside_bulk_us.size() == trips_) return end(std::move(times_));
    send_large();
  });
}

void urgent_trips::end(expected<urgent_times> result) {
  if (done_) std::exchange(done_, nullptr)(std::move(result));
}

void answer_urgent(post_office& office) {
  office.set_control_handler(
      [&office](incarnation_id from, std::uint64_t type, std::span<const std::byte> body) {
        (void)office.send_control(from, type, body);
      });
}

} // namespace troupe::bench
