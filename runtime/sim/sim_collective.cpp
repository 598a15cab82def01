#include "runtime/sim/sim_collective.hpp"

#include <algorithm>
#include <csignal>
#include <vector>

#include "runtime/policy/canonical_sum.hpp"
#include "runtime/seams/sum_parts.hpp"
#include "runtime/sim/sim_group.hpp"

namespace troupe {
namespace {

constexpr auto delay_min = std::chrono::microseconds{5};
constexpr auto delay_max = std::chrono::microseconds{400};
constexpr std::size_t alignment_elements = 16; // 64 bytes

error ended() {
  return {errc::aborted, "the generation ended"};
}

} // namespace

class sim_meeting : public std::enable_shared_from_this<sim_meeting> {
public:
  sim_meeting(sim_collective_hub& hub, const collective_shape& shape)
      : hub_{hub}
      , shape_{shape}
      , sum_{shape}
      , result_(sum_.sums() * shape.elements)
      , arrived_(shape.world)
      , arrivals_(shape.world) {
    for (std::uint32_t i = 0; i < sum_.slots(); ++i) {
      slots_.emplace_back(shape.elements + alignment_elements);
      taken_.emplace_back(shape.elements);
    }
    for (std::uint32_t rank = 0; rank < shape.world; ++rank)
      begun_.emplace_back(shape.elements);
    if (shape.group_bytes > 0) groups_ = std::make_shared<sim_groups>(hub, shape.world);
  }

  [[nodiscard]] const collective_shape& shape() const { return shape_; }
  [[nodiscard]] const std::vector<std::uint64_t>& arrivals() const { return arrivals_; }
  [[nodiscard]] std::span<float> slot(std::uint32_t rank, std::size_t index) {
    auto& memory = slots_[sum_.first_slot(rank) + index];
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const auto skip = ((address + 63) / 64 * 64 - address) / sizeof(float);
    return {memory.data() + skip, shape_.elements};
  }

  void begin(std::uint32_t rank, sim_process& who, element_range part, part_done done) {
    if (shape_.world == 1) return;
    if (hub_.fatal_part_ > 0 && --hub_.fatal_part_ == 0) return hub_.world_.kill(who.pid(), SIGKILL);
    auto& own = begun_[rank];
    own.left.begin(part);
    take(rank, part);
    own.parts.push_back(part);
    own.waiting.push_back(std::move(done));
    const auto index = own.parts.size() - 1;
    const auto same = [&](const begun& other) {
      if (other.parts.size() <= index) return false;
      invariant(other.parts[index] == part, "CO-5: all ranks begin the same parts");
      return true;
    };
    if (aborted_ || !std::ranges::all_of(begun_, same)) return;
    for (auto& one : begun_)
      if (index < one.waiting.size() && one.waiting[index]) one.waiting[index]();
  }
  void forget(std::uint32_t rank) { begun_[rank].waiting.clear(); } // nobody is told any more

  void arrive(std::uint32_t rank, sim_process& who, all_reduce_done done) {
    ++arrivals_[rank];
    if (hub_.observer_ != nullptr) hub_.observer_->on_arrival(who.pid());
    if (aborted_) return complete({&who, std::move(done)}, 0);
    arrived_[rank] = std::make_unique<waiter>(waiter{&who, std::move(done)});
    std::vector<std::int64_t> pids;
    for (const auto& one : arrived_) {
      if (one == nullptr) return;
      pids.push_back(one->process->pid());
    }
    if (hub_.broken_sum_ > 0 && --hub_.broken_sum_ == 0) return abort();
    for (std::uint32_t r = 0; r < shape_.world; ++r) {
      for (const auto rest : begun_[r].left.take_rest())
        take(r, rest);
      invariant(begun_[r].parts == begun_[rank].parts, "CO-5: all ranks begin the same parts");
    }
    for (auto& one : begun_)
      one.parts.clear(), one.waiting.clear();
    std::vector<const float*> contributions;
    for (const auto& one : taken_)
      contributions.push_back(one.data());
    sum_.evaluate(contributions, 0, shape_.elements, result_.data(), store_kind::cached, 0, shape_.elements);
    const auto number = ++hub_.sums_;
    ++made_;
    if (hub_.observer_ != nullptr) hub_.observer_->on_sum(number, shape_, pids, result_);
    finish_when_reachable(number, hub_.world_.now());
  }

  // Null: the shape asked for none.
  [[nodiscard]] std::unique_ptr<rank_group> join_group(std::uint32_t rank, sim_process& owner) {
    return groups_ == nullptr ? nullptr : groups_->join(rank, owner);
  }

  void abort() {
    if (aborted_) return;
    aborted_ = true;
    if (groups_ != nullptr) groups_->abort();
    finish(0);
  }

private:
  struct begun {
    explicit begun(std::size_t elements)
        : left{elements} {}
    sum_parts left;
    std::vector<element_range> parts; // of the coming sum
    std::vector<part_done> waiting;
  };
  void take(std::uint32_t rank, element_range part) {
    for (std::uint32_t i = 0; i < sum_.slots_of(rank); ++i) {
      const auto from = slot(rank, i).subspan(part.begin, part.size());
      std::ranges::copy(from,
                        taken_[sum_.first_slot(rank) + i].begin() + static_cast<std::ptrdiff_t>(part.begin));
    }
  }
  struct waiter {
    sim_process* process{nullptr}; // the world keeps ended ones
    all_reduce_done done;
  };

  void finish(std::uint64_t number) {
    for (auto& one : arrived_) {
      if (one != nullptr) complete(std::move(*one), number);
      one.reset();
    }
  }

  // Nobody has the sum while something lies between two members.
  void finish_when_reachable(std::uint64_t number, time_point made) {
    if (aborted_) return;
    std::vector<sim_host_id> hosts;
    for (const auto& one : arrived_)
      hosts.push_back(one->process->host());
    const auto now = hub_.world_.now();
    const auto when = hub_.world_.hosts().reunion(hosts, made, now);
    if (when <= now) return finish(number);
    hub_.world_.after(
        when - now, [self = shared_from_this(), number, made] { self->finish_when_reachable(number, made); });
  }

  // `number` 0: aborted.
  void complete(waiter who, std::uint64_t number) {
    if (!who.process->alive()) return; // died while it waited
    auto held = std::make_shared<all_reduce_done>(std::move(who.done));
    auto& queue = who.process->device_queue;
    hub_.world_.schedule(hub_.world_.draw_between(delay_min, delay_max), &queue,
                         [self = shared_from_this(), process = who.process, held, number] {
                           self->hand_over(*process, *held, number);
                         });
  }

  void hand_over(sim_process& process, all_reduce_done& done, std::uint64_t number) {
    const bool lost = hub_.aborts_split_ && number != 0 && aborted_ && hub_.world_.draw(2) == 0; // CO-2
    if (number == 0 || lost) return done(ended());
    done(reduction{std::span{result_}.first(shape_.elements), made_, shape_.elements});
    if (hub_.observer_ != nullptr) hub_.observer_->on_taken(number, process.pid());
  }

  sim_collective_hub& hub_;
  collective_shape shape_;
  canonical_sum sum_;
  std::vector<std::vector<float>> slots_; // where contributions are written
  std::vector<std::vector<float>> taken_; // as they were when they were begun
  std::vector<float> result_;
  std::vector<begun> begun_; // by rank
  std::vector<std::unique_ptr<waiter>> arrived_;
  std::vector<std::uint64_t> arrivals_;
  std::uint64_t made_{0}; // sums of this meeting; the next waits until everybody has taken it
  bool aborted_{false};
  std::shared_ptr<sim_groups> groups_;
};

namespace {

class sim_communicator final : public communicator {
public:
  sim_communicator(std::shared_ptr<sim_meeting> meeting, sim_process& owner, std::uint32_t rank)
      : meeting_{std::move(meeting)}
      , owner_{owner}
      , rank_{rank}
      , group_{meeting_->join_group(rank, owner)} {}
  ~sim_communicator() override { meeting_->forget(rank_); }
  sim_communicator(const sim_communicator&) = delete;
  sim_communicator& operator=(const sim_communicator&) = delete;
  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return meeting_->slot(rank_, index);
  }
  void begin(element_range part, part_done done) override {
    if (owner_.alive()) meeting_->begin(rank_, owner_, part, std::move(done));
  }
  void all_reduce(all_reduce_done done) override {
    if (owner_.alive()) meeting_->arrive(rank_, owner_, std::move(done)); // SW-3
  }
  void abort() noexcept override {
    if (owner_.alive()) meeting_->abort();
  }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return meeting_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  std::shared_ptr<sim_meeting> meeting_;
  sim_process& owner_;
  std::uint32_t rank_;
  std::unique_ptr<rank_group> group_;
};

} // namespace

class sim_collective final : public collective {
public:
  sim_collective(sim_collective_hub& hub, sim_process& owner)
      : hub_{hub}
      , owner_{owner} {}
  ~sim_collective() override { hub_.meetings_.erase(current_); }

  expected<std::string> prepare(const collective_shape& shape) override {
    hub_.meetings_.erase(current_);
    current_ = "sim:" + std::to_string(hub_.next_++);
    hub_.meetings_[current_] = std::make_shared<sim_meeting>(hub_, shape);
    return current_;
  }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override {
    const auto found = hub_.meetings_.find(current_);
    return found == hub_.meetings_.end() ? std::vector<std::uint64_t>{} : found->second->arrivals();
  }
  expected<std::unique_ptr<communicator>> connect(const std::string& descriptor,
                                                  const collective_shape& shape, rank_id rank) override {
    const auto found = hub_.meetings_.find(descriptor);
    if (found == hub_.meetings_.end())
      return error{errc::aborted, descriptor + ": the meeting place is gone"};
    const auto& there = found->second->shape();
    if (there.generation != shape.generation || there.world != shape.world || there.shards != shape.shards ||
        there.elements != shape.elements || there.wire != shape.wire ||
        there.wire_elements != shape.wire_elements || there.group_bytes != shape.group_bytes ||
        there.kept != shape.kept || there.cuts != shape.cuts || rank.value() >= shape.world) {
      return error{errc::bad_argument, descriptor + ": the shape does not fit"};
    }
    return std::unique_ptr<communicator>{
        std::make_unique<sim_communicator>(found->second, owner_, rank.value())};
  }

private:
  sim_collective_hub& hub_;
  sim_process& owner_;
  std::string current_;
};

std::unique_ptr<collective> sim_collective_hub::make_collective(sim_process& owner) {
  return std::make_unique<sim_collective>(*this, owner);
}

} // namespace troupe
