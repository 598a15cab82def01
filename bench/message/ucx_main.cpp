// Raw UCX: the baseline `ucx_perftest` of `bench message`, measured as the others are.
#include <cstdio>
#include <string>

#include "bench/message/ucx_path.hpp"
#include "bench/support/peer_link.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

constexpr std::size_t sending_max = 256; // requests that UCX holds

std::span<const std::byte> first(const std::vector<std::byte>& of, std::size_t bytes) {
  return std::span{of}.first(bytes);
}

class raw_end {
public:
  raw_end(const program_options& options, peer_link link, std::unique_ptr<raw_path> path)
      : options_{options}
      , link_{std::move(link)}
      , path_{std::move(path)} {}

  static expected<raw_end> open(const program_options& options, peer_link link) {
    auto path = raw_path::open(options);
    if (!path) return path.failure();
    if (auto said = link.say((*path)->address()); !said) return said.failure();
    const auto theirs = link.hear();
    if (!theirs) return theirs.failure();
    if (auto connected = (*path)->connect(*theirs); !connected) return connected.failure();
    return raw_end{options, std::move(link), std::move(*path)};
  }

  expected<program_result> measure() {
    program_result out;
    out.half_rtt_us.reserve(options_.round_trips);
    for (std::uint64_t i = 0; i < options_.warm_up() + options_.round_trips; ++i) {
      const auto start = bench_clock::now();
      send(raw_kind::ping, ping_bytes);
      if (!arrived(raw_kind::ping, i + 1)) return path_->failure();
      if (i >= options_.warm_up()) out.half_rtt_us.push_back(seconds_since(start) * 1e6 / 2);
    }
    for (std::uint64_t i = 0; i < options_.stream; ++i)
      if (!send_when_room(raw_kind::piece, piece_bytes, sending_max)) return path_->failure();
    if (!arrived(raw_kind::done, 1)) return path_->failure();
    const auto start = bench_clock::now();
    for (std::uint64_t i = 0; i < options_.bulk; ++i)
      if (!send_when_room(raw_kind::bulk, bulk_bytes, bulk_window)) return path_->failure();
    if (!arrived(raw_kind::done, 2)) return path_->failure();
    out.bulk_s = seconds_since(start);
    const auto theirs = link_.hear();
    if (!theirs) return theirs.failure();
    out.stream_s = std::stod(*theirs);
    return out;
  }

  expected<void> answer() {
    for (std::uint64_t i = 0; i < options_.warm_up() + options_.round_trips; ++i) {
      if (!arrived(raw_kind::ping, i + 1)) return path_->failure();
      send(raw_kind::ping, ping_bytes);
    }
    if (!arrived(raw_kind::piece, options_.stream)) return path_->failure();
    send(raw_kind::done, ping_bytes);
    if (!arrived(raw_kind::bulk, options_.bulk)) return path_->failure();
    send(raw_kind::done, ping_bytes);
    if (!path_->wait([&] { return path_->sending() == 0; })) return path_->failure();
    const auto& times = path_->arrived();
    const auto took = std::chrono::duration<double>(times.newest_piece - times.first_piece);
    if (auto said = link_.say(std::to_string(took.count())); !said) return said;
    (void)link_.hear(); // the other end goes first
    return {};
  }

private:
  void send(raw_kind kind, std::size_t bytes) { path_->send(kind, first(payload_, bytes)); }
  bool send_when_room(raw_kind kind, std::size_t bytes, std::size_t most) {
    if (!path_->wait([&] { return path_->sending() < most; })) return false;
    send(kind, bytes);
    return true;
  }
  bool arrived(raw_kind kind, std::uint64_t count) {
    return path_->wait([&] { return path_->arrived().of(kind) >= count; });
  }

  const program_options& options_;
  peer_link link_;
  std::unique_ptr<raw_path> path_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(bulk_bytes, std::byte{1});
};

int fail(const error& cause) {
  std::fprintf(stderr, "message_ucx: %s\n", cause.text.c_str());
  return exit_code_of(cause.code);
}

int run_peer(const program_options& options) {
  auto end = raw_end::open(options, peer_link::inherited(options.peer));
  if (!end) return fail(end.failure());
  const auto answered = end->answer();
  return answered ? 0 : fail(answered.failure());
}

int run_driver(const program_options& options) {
  auto link = peer_link::start(peer_arguments(options));
  if (!link) return fail(link.failure());
  auto end = raw_end::open(options, std::move(*link));
  if (!end) return fail(end.failure());
  const auto result = end->measure();
  if (!result) return fail(result.failure());
  print_result(options, *result);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_options(argc, argv, "Raw UCX active messages between two processes");
  if (line.exit_code) return *line.exit_code;
  return line.options.peer >= 0 ? run_peer(line.options) : run_driver(line.options);
}
