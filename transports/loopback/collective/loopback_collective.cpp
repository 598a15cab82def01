#include "transports/loopback/collective/loopback_collective.hpp"

#include <charconv>
#include <condition_variable>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/buffer_pool.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/policy/canonical_sum.hpp"
#include "transports/loopback/collective/loopback_group.hpp"

namespace troupe {

namespace {

constexpr std::string_view scheme = "loopback:";

std::size_t stride_of(const collective_shape& shape) {
  return (shape.elements + 15) / 16 * 16;
}

std::optional<std::uint64_t> room_number(std::string_view descriptor) {
  if (!descriptor.starts_with(scheme)) return std::nullopt;
  descriptor.remove_prefix(scheme.size());
  std::uint64_t number = 0;
  const auto* end = descriptor.data() + descriptor.size();
  const auto [stop, failure] = std::from_chars(descriptor.data(), end, number);
  if (failure != std::errc{} || stop != end) return std::nullopt;
  return number;
}

expected<void> check(const collective_shape& shape) {
  const bool possible = shape.world > 0 && shape.world <= limits::workers_max && shape.shards > 0 &&
                        shape.shards <= limits::shards_max && shape.elements > 0 &&
                        shape.elements <= limits::bulk_bytes_max / sizeof(float) && cuts_fit(shape);
  if (possible) return {};
  return error{errc::bad_argument, "collective: impossible shape: world " + std::to_string(shape.world) +
                                       ", " + std::to_string(shape.shards) + " shards, " +
                                       std::to_string(shape.elements) + " elements"};
}

bool same(const collective_shape& a, const collective_shape& b) {
  return a.generation == b.generation && a.world == b.world && a.shards == b.shards &&
         a.elements == b.elements && a.group_bytes == b.group_bytes && a.wire == b.wire &&
         a.wire_elements == b.wire_elements && a.kept == b.kept && a.cuts == b.cuts;
}

} // namespace

// What one rank waits for.
struct loopback_seat {
  bool taken{false};
  std::uint64_t arrivals{0};
  executor* device{nullptr};
  all_reduce_done pending;
};

class loopback_room : public std::enable_shared_from_this<loopback_room> {
public:
  explicit loopback_room(const collective_shape& shape)
      : shape_{shape}
      , plan_{shape}
      , memory_{(plan_.slots() + std::size_t{plan_.sums()}) * stride_of(shape) * sizeof(float)}
      , seats_(shape.world) {
    for (std::uint32_t number = 0; number < plan_.slots(); ++number)
      inputs_.push_back(slot(number));
    if (shape.group_bytes > 0) groups_ = std::make_shared<loopback_groups>(shape.world);
  }

  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] expected<void> take_seat(std::uint32_t rank, executor* device) {
    const std::lock_guard lock{mutex_};
    if (aborted_) return ended();
    auto& seat = seats_[rank];
    if (seat.taken)
      return error{errc::bad_argument, "rank " + std::to_string(rank) + " is already connected"};
    seat.taken = true;
    seat.device = device;
    return {};
  }
  [[nodiscard]] std::span<float> contribution(std::uint32_t rank, std::size_t index) {
    invariant(index < plan_.slots_of(rank), "CP-2: a rank contributes one sum for each node it owns");
    return {slot(plan_.first_slot(rank) + static_cast<std::uint32_t>(index)), shape_.elements};
  }

  void arrive(std::uint32_t rank, all_reduce_done done) {
    std::unique_lock lock{mutex_};
    auto& seat = seats_[rank];
    ++seat.arrivals;
    if (seat.device != nullptr) {
      invariant(!seat.pending, "LC-2: one all-reduce of a rank at a time");
      seat.pending = std::move(done);
      if (aborted_)
        post(seat, false);
      else if (++present_ == shape_.world)
        finish_round();
      return;
    }
    if (!aborted_ && ++present_ == shape_.world) {
      finish_round();
    } else {
      const auto round = rounds_;
      changed_.wait(lock, [&] { return aborted_ || rounds_ != round; });
      if (rounds_ == round) {
        lock.unlock();
        return done(ended());
      }
    }
    lock.unlock();
    done(result());
  }

  // Null: the shape asked for none.
  [[nodiscard]] std::unique_ptr<rank_group> join_group(std::uint32_t rank, executor* device) {
    return groups_ == nullptr ? nullptr : groups_->join(rank, device);
  }

  void abort() noexcept {
    if (groups_ != nullptr) groups_->abort();
    const std::lock_guard lock{mutex_};
    aborted_ = true;
    for (auto& seat : seats_)
      if (seat.pending) post(seat, false);
    changed_.notify_all();
  }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const {
    const std::lock_guard lock{mutex_};
    std::vector<std::uint64_t> sequences;
    for (const auto& seat : seats_)
      sequences.push_back(seat.arrivals);
    return sequences;
  }

private:
  [[nodiscard]] float* slot(std::uint32_t number) {
    return memory_.as<float>().data() + number * stride_of(shape_);
  }
  [[nodiscard]] reduction result() {
    // Alone, a rank owns each sum whole: its contributions are they.
    return {{shape_.world == 1 ? slot(0) : slot(plan_.slots()), shape_.elements}, rounds_, stride_of(shape_)};
  }
  [[nodiscard]] error ended() const {
    return {errc::aborted, "generation " + to_string(shape_.generation) + " was ended"};
  }
  void finish_round() {
    if (shape_.world > 1)
      plan_.evaluate(inputs_, 0, shape_.elements, slot(plan_.slots()), store_kind::cached, 0,
                     stride_of(shape_));
    present_ = 0;
    ++rounds_;
    for (auto& seat : seats_)
      if (seat.pending) post(seat, true);
    changed_.notify_all();
  }
  // `done` and its room travel in one small heap cell: together they exceed a task's inline capacity.
  void post(loopback_seat& seat, bool complete) {
    struct cell {
      std::shared_ptr<loopback_room> room;
      all_reduce_done done;
    };
    auto travelling = std::make_unique<cell>(cell{shared_from_this(), std::move(seat.pending)});
    seat.device->post([complete, travelling = std::move(travelling)] {
      if (complete)
        travelling->done(travelling->room->result());
      else
        travelling->done(travelling->room->ended());
    });
  }

  const collective_shape shape_;
  canonical_sum plan_;
  touched_memory memory_; // contributions of all ranks, then the sums
  std::vector<const float*> inputs_;
  std::shared_ptr<loopback_groups> groups_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<loopback_seat> seats_;
  std::uint32_t present_{0};
  std::uint64_t rounds_{0};
  bool aborted_{false};
};

namespace {

class loopback_communicator final : public communicator {
public:
  loopback_communicator(std::shared_ptr<loopback_room> room, std::uint32_t rank, executor* device)
      : room_{std::move(room)}
      , rank_{rank}
      , group_{room_->join_group(rank, device)} {}
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return room_->contribution(rank_, index);
  }
  void all_reduce(all_reduce_done done) override { room_->arrive(rank_, std::move(done)); }
  void abort() noexcept override { room_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return room_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  std::shared_ptr<loopback_room> room_;
  std::uint32_t rank_;
  std::unique_ptr<rank_group> group_;
};

} // namespace

loopback_hall::loopback_hall() = default;
loopback_hall::~loopback_hall() = default;

std::uint64_t loopback_hall::open(std::shared_ptr<loopback_room> made) {
  const std::lock_guard lock{mutex_};
  rooms_.emplace(next_, std::move(made));
  return next_++;
}

std::shared_ptr<loopback_room> loopback_hall::find(std::uint64_t number) const {
  const std::lock_guard lock{mutex_};
  const auto found = rooms_.find(number);
  return found == rooms_.end() ? nullptr : found->second;
}

void loopback_hall::close(std::uint64_t number) noexcept {
  const auto room = find(number);
  if (room == nullptr) return;
  {
    const std::lock_guard lock{mutex_};
    rooms_.erase(number);
  }
  room->abort();
}

loopback_collective::loopback_collective(loopback_hall& hall, executor* device)
    : hall_{hall}
    , device_{device} {}

loopback_collective::~loopback_collective() {
  hall_.close(current_);
}

expected<std::string> loopback_collective::prepare(const collective_shape& shape) {
  if (auto possible = check(shape); !possible) return possible.failure();
  hall_.close(current_);
  current_ = hall_.open(std::make_shared<loopback_room>(shape));
  return std::string{scheme} + std::to_string(current_);
}

expected<std::unique_ptr<communicator>>
loopback_collective::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  if (auto possible = check(shape); !possible) return possible.failure();
  const auto number = room_number(descriptor);
  if (!number) return error{errc::bad_argument, "'" + descriptor + "' does not name a room of this process"};
  auto room = hall_.find(*number);
  if (room == nullptr) return error{errc::aborted, "'" + descriptor + "' is gone: its generation has ended"};
  if (!same(room->shape(), shape) || rank.value() >= shape.world)
    return error{errc::bad_argument, "'" + descriptor + "' is of another generation or shape than rank " +
                                         to_string(rank) + " expects"};
  if (auto seated = room->take_seat(rank.value(), device_); !seated) return seated.failure();
  return std::unique_ptr<communicator>{
      std::make_unique<loopback_communicator>(std::move(room), rank.value(), device_)};
}

} // namespace troupe
