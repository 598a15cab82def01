// Troupe's all-reduce between hosts, over UCX (tcp): on the loopback device, or each rank in a network
// namespace of its own (between_namespaces.py), which some of them may share: then also in two levels, shared
// memory first. Or the transport under it: the bytes of a sum of two ranks, as one transfer each way at the
// same time.
#include <condition_variable>
#include <mutex>

#include "bench/collective/communicator_operation.hpp"
#include "runtime/base/buffer_pool.hpp"
#include "tests/support/notice_board.hpp"
#include "tests/support/ring_process.hpp"
#include "transports/shm/shm_collective.hpp"
#include "transports/two_level/two_level_collective.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

// Sends and receives; a round ends when both have arrived. Whoever waits for one that has died waits until it
// is ended from outside (rank_board.hpp).
class bulk_operation final : public rank_operation, public transport_listener {
public:
  bulk_operation(test::ring_process& process, const collective_member& peer, std::size_t bytes)
      : process_{process}
      , peer_{peer.incarnation}
      , out_{bytes}
      , in_{bytes} {
    test::on(process.loop(), [&] {
      process.ring().attach(nullptr);
      process.network().set_listener(this);
      (void)process.network().connect(peer.incarnation, peer.address); // refused: the first round tells
    });
  }
  std::vector<std::span<float>> inputs() override { return {out_.as<float>()}; }
  expected<std::span<const float>> run() override {
    ++round_;
    process_.loop().post([this, round = round_] {
      process_.network().send_bulk(peer_, round, out_.bytes(),
                                   [this](const expected<void>& result) { note(sent_, result); });
    });
    std::unique_lock lock{mutex_};
    told_.wait(lock, [&] { return failure_ || (sent_ == round_ && received_ == round_); });
    if (failure_) return *failure_;
    return std::span<const float>{in_.as<float>()};
  }
  std::uint32_t summands() const override { return 1; }

  void on_message(incarnation_id, std::span<const std::byte>) override {}
  std::span<std::byte> on_bulk_announced(incarnation_id, const bulk_announcement&) override {
    return in_.bytes();
  }
  void on_bulk_received(incarnation_id, std::uint64_t, expected<void> result) override {
    note(received_, result);
  }
  void on_path_lost(incarnation_id, const error& cause) override { note(received_, cause); }

private:
  void note(std::uint64_t& count, const expected<void>& result) {
    const std::lock_guard lock{mutex_};
    ++count;
    if (!result && !failure_) failure_ = result.failure();
    told_.notify_one();
  }

  test::ring_process& process_;
  incarnation_id peer_;
  touched_memory out_, in_;
  std::mutex mutex_;
  std::condition_variable told_;
  std::uint64_t round_{0}, sent_{0}, received_{0};
  std::optional<error> failure_;
};

// Memory between the ranks of one place, the process's ring between one rank of each.
class two_levels {
public:
  explicit two_levels(test::ring_process& process)
      : process_{process}
      , inside_{{.lane = &process.lane()}}
      , levels_{process.loop(), process.device(), inside_, process.ring()} {
    test::on(process.loop(), [&] {
      process.ring().attach(nullptr);
      levels_.attach(&process.network());
    });
  }
  expected<std::unique_ptr<communicator>> connect(const collective_shape& shape, std::uint32_t rank) {
    const auto descriptor = levels_.prepare(shape);
    if (!descriptor) return descriptor.failure();
    return test::connect_posted(process_.device(), levels_, *descriptor, shape, rank_id{rank});
  }

private:
  test::ring_process& process_;
  shm_collective inside_;
  two_level_collective levels_;
};

// Ranks of one network namespace are on one host.
void put_on_hosts(std::vector<collective_member>& members, const std::vector<network_place>& places) {
  for (std::uint32_t rank = 1; rank < members.size() && rank < places.size(); ++rank)
    members[rank].host =
        members[rank - 1].host + (places[rank].name_space == places[rank - 1].name_space ? 0 : 1);
}

expected<std::unique_ptr<rank_operation>> open_rank(const allreduce_options& options, std::uint32_t rank,
                                                    test::notice_board& board) {
  ucx_settings lanes;
  if (rank < options.places.size()) lanes.devices = options.places[rank].device;
  auto* here = new test::ring_process{{}, std::move(lanes)}; // until the process exits
  collective_shape shape{generation_id{1}, options.ranks, options.shards, options.elements()};
  shape.members = board.exchange(rank, here->who());
  if (shape.members.size() != options.ranks) return error{errc::timed_out, "the other ranks did not come"};
  if (options.transport_only)
    return std::unique_ptr<rank_operation>{new bulk_operation{*here, shape.members[1 - rank], options.bytes}};
  if (options.two_levels) {
    put_on_hosts(shape.members, options.places);
    auto* levels = new two_levels{*here}; // likewise
    auto member = levels->connect(shape, rank);
    if (!member) return member.failure();
    return std::unique_ptr<rank_operation>{new communicator_operation{std::move(*member), shape, rank}};
  }
  const auto descriptor = here->ring().prepare(shape);
  if (!descriptor) return descriptor.failure();
  auto member = here->connect(*descriptor, shape, rank);
  if (!member) return member.failure();
  return std::unique_ptr<rank_operation>{new communicator_operation{std::move(*member), shape, rank}};
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_allreduce_options(argc, argv, "Troupe's all-reduce between hosts");
  if (line.exit_code) return *line.exit_code;
  auto options = line.options;
  options.pinned = false; // each rank has threads beside its own
  if (options.transport_only && options.ranks != 2)
    return tell_failure("allreduce_ring", error{errc::bad_argument, "--transport-only is between 2 ranks"});
  test::notice_board board{options.ranks};
  const auto measured =
      measure_forked(options, [&](std::uint32_t rank) { return open_rank(options, rank, board); });
  return measured ? tell(options, *measured) : tell_failure("allreduce_ring", measured.failure());
}
