// The path between two processes, tried: the transport as jobs use it, without actors.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "bench/support/peer_link.hpp"
#include "bench/support/quantiles.hpp"
#include "cli/doctor/doctor_probe.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_entropy.hpp"
#include "transports/ucx/lanes.hpp"

namespace troupe::doctor {
namespace {

// Both ends are of this program, and talk to each other only.
const path_secret probe_secret{path_secret::key{std::byte{1}}};

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr unsigned round_trips = 1000;
constexpr unsigned transfers = 64;
constexpr std::size_t transfer_bytes = 1U << 20U;
constexpr duration limit = 20s; // of each part

// What the two tell each other at first: who they are, and where.
struct card {
  std::array<std::uint64_t, 4> ids{}; // the job and the sender, two words each
  peer_address address;
};

std::string to_text(const card& what) {
  std::string out(sizeof what.ids, '\0');
  std::memcpy(out.data(), what.ids.data(), sizeof what.ids);
  out.append(reinterpret_cast<const char*>(what.address.data()), what.address.size());
  return out;
}

expected<card> card_of(const std::string& text) {
  card out;
  if (text.size() <= sizeof out.ids) return error{errc::corrupt, "the other process says nothing of use"};
  std::memcpy(out.ids.data(), text.data(), sizeof out.ids);
  const auto* rest = reinterpret_cast<const std::byte*>(text.data());
  out.address.assign(rest + sizeof out.ids, rest + text.size());
  return out;
}

class probe_end final : public transport_listener {
public:
  static expected<std::unique_ptr<probe_end>> open(const std::string& transport, bench::peer_link link,
                                                   bool first) {
    std::unique_ptr<probe_end> made{new probe_end{std::move(link)}};
    auto network =
        ucx_transport::open(made->loop_.io(), made->clock_, random_id_from<incarnation_id>(made->random_),
                            settings_for(transport));
    if (!network) return network.failure();
    made->network_ = std::move(*network);
    made->network_->set_listener(made.get());
    if (auto met = made->meet(first); !met) return met.failure();
    return made;
  }

  expected<path_facts> measure() {
    if (auto connected = network_->connect(peer_, their_address_); !connected) return connected.failure();
    std::vector<double> halves;
    const std::array<std::byte, 8> payload{};
    for (unsigned i = 0; i < round_trips; ++i) {
      const auto start = steady::now();
      if (auto sent = network_->send(peer_, payload); !sent) return sent.failure();
      if (!wait([&] { return received_ > i; })) return failure();
      halves.push_back(std::chrono::duration<double, std::micro>(steady::now() - start).count() / 2);
    }
    path_facts out{.lanes = parse_lanes(network_->lanes(peer_)), .half_rtt_us = bench::median(halves)};
    const std::vector<std::byte> source(transfer_bytes, std::byte{1});
    const auto start = steady::now();
    for (unsigned i = 0; i < transfers; ++i)
      network_->send_bulk(peer_, i + 1, source, [this](const expected<void>& arrived) {
        if (arrived) ++arrived_;
      });
    if (!wait([&] { return arrived_ == transfers; })) return failure();
    out.bytes_per_s = static_cast<double>(transfers * transfer_bytes) /
                      std::chrono::duration<double>(steady::now() - start).count();
    return out;
  }

  int answer() { // until the other end has closed the path
    const bool over = loop_.run_until([this] { return lost_.has_value(); }, 3 * limit);
    return over ? 0 : 1;
  }

  void on_message(incarnation_id from, std::span<const std::byte> payload) override {
    ++received_;
    if (!measures_) (void)network_->send(from, payload);
  }
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement& what) override {
    return what.bytes == room_.size() ? std::span{room_} : std::span<std::byte>{};
  }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void>) override {}
  void on_path_lost(incarnation_id, const error& cause) override { lost_ = cause; }

private:
  explicit probe_end(bench::peer_link link)
      : link_{std::move(link)} {}

  // The first one names the job.
  expected<void> meet(bool first) {
    measures_ = first;
    const auto job = random_id_from<job_id>(random_);
    const auto self = network_->self();
    const card own{{job.high(), job.low(), self.high(), self.low()}, network_->local_address()};
    if (auto said = link_.say(to_text(own)); !said) return said;
    const auto heard = link_.hear();
    if (!heard) return heard.failure();
    auto theirs = card_of(*heard);
    if (!theirs) return theirs.failure();
    network_->set_job(first ? job : job_id{theirs->ids[0], theirs->ids[1]}, probe_secret);
    peer_ = {theirs->ids[2], theirs->ids[3]};
    their_address_ = std::move(theirs->address);
    return {};
  }
  bool wait(inline_function<bool()> done) {
    return loop_.run_until([&] { return lost_.has_value() || done(); }, limit) && !lost_;
  }
  [[nodiscard]] error failure() const {
    return lost_ ? *lost_ : error{errc::timed_out, "no answer from the other process"};
  }

  bench::peer_link link_; // goes last: waits for the process
  event_loop loop_;
  host_clock clock_{loop_};
  host_entropy random_;
  std::unique_ptr<ucx_transport> network_;
  incarnation_id peer_;
  peer_address their_address_;
  std::vector<std::byte> room_ = std::vector<std::byte>(transfer_bytes);
  bool measures_{false};
  unsigned received_{0}, arrived_{0};
  std::optional<error> lost_;
};

} // namespace

expected<path_facts> probe_path(const std::string& transport) {
  auto link = bench::peer_link::start({"doctor", "--transport", transport});
  if (!link) return link.failure();
  auto end = probe_end::open(transport, std::move(*link), true);
  if (!end) return end.failure();
  return (*end)->measure();
}

int answer_path_probe(const std::string& transport, int fd) {
  auto end = probe_end::open(transport, bench::peer_link::inherited(fd), false);
  return end ? (*end)->answer() : exit_code_of(end.failure().code);
}

} // namespace troupe::doctor
