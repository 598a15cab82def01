#include "transports/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

class nccl_member final : public gpu_member {
public:
  nccl_member(std::shared_ptr<gpu_device> on, const collective_shape& shape, sum_layout layout,
              std::byte* memory)
      : device_{std::move(on)}
      , shape_{shape}
      , layout_{std::move(layout)}
      , memory_{memory}
      , transfers_{layout_.transfers(memory)}
      , sum_{layout_.arguments(memory)} {}

  [[nodiscard]] const collective_shape& shape() const { return shape_; }

  [[nodiscard]] std::span<float> contribution(std::size_t index) {
    invariant(index < layout_.own_slots(), "CP-2: a rank contributes one sum for each node it owns");
    return {layout_.contribution(memory_, static_cast<std::uint32_t>(index)), shape_.elements};
  }

  void all_reduce(all_reduce_done done) {
    invariant(!done_, "NC-2: one all-reduce of a rank at a time");
    if (ended_) return done(*ended_);
    done_ = std::move(done);
    stage_ = stage::waiting;
    if (comm_ != nullptr) issue();
  }

  // The last of it: whoever waits is told, and the memory can be lent again.
  void leave() {
    if (done_) device_->abort(shape_.generation, ended_text());
    poison({errc::aborted, ended_text()});
    device_->leave(shape_.generation);
    device_->give_back(memory_);
  }

  // --- gpu_member ---

  void ready(nccl::comm on) override {
    comm_ = on;
    const auto tables = layout_.tables(memory_); // nothing is under way: the copy does not wait
    if (auto copied = device_->calls().copy(layout_.tables_at(memory_), tables.data(), tables.size());
        !copied)
      return device_->report(shape_.generation, copied.failure());
    if (stage_ == stage::waiting) issue();
  }

  void poison(const error& why) override {
    if (!ended_) ended_ = why;
    comm_ = nullptr;
    stage_ = stage::idle;
    if (done_) std::exchange(done_, {})(*ended_);
  }

  bool look() override {
    if (stage_ == stage::idle || stage_ == stage::waiting) return false;
    const auto answer = device_->calls().status(comm_);
    if (answer.under_way()) return true;
    if (answer.failed()) return device_->report(shape_.generation, answer), false;
    if (stage_ == stage::exchanging) return add_and_gather();
    if (stage_ == stage::gathering) return mark();
    return finish_when_reached();
  }

private:
  // Calls that the library may finish later (`status`); the next one follows then, in a look.
  enum class stage : std::uint8_t { idle, waiting, exchanging, gathering, marked };

  [[nodiscard]] std::string ended_text() const {
    return "generation " + to_string(shape_.generation) + " was ended";
  }
  [[nodiscard]] bool may_issue() const { return device_->may_issue(shape_.generation); }

  void issue() {
    if (!may_issue()) return; // the poison is on its way
    if (shape_.world == 1) {
      (void)mark();
    } else {
      stage_ = stage::exchanging;
      after(device_->calls().exchange(comm_, transfers_));
    }
    device_->look_soon();
  }

  bool add_and_gather() {
    auto& calls = device_->calls();
    if (auto added = calls.sum(sum_); !added) return failed(added.failure());
    stage_ = stage::gathering;
    return after(calls.all_gather(comm_, layout_.own_slice(memory_), layout_.sum(memory_), layout_.slice()));
  }

  bool mark() {
    stage_ = stage::marked;
    const auto marked = device_->calls().mark();
    return marked ? true : failed(marked.failure());
  }

  bool finish_when_reached() {
    const auto reached = device_->calls().reached();
    if (!reached) return failed(reached.failure());
    if (!*reached) return true;
    if (!may_issue()) return false; // NS-1
    stage_ = stage::idle;
    const reduction made{{layout_.sum(memory_), shape_.elements}, ++sums_};
    std::exchange(done_, {})(made);
    return stage_ != stage::idle; // the completion may have begun the next one
  }

  bool after(const nccl_answer& answer) {
    if (answer.failed()) device_->report(shape_.generation, answer);
    return !answer.failed();
  }
  bool failed(const error& why) {
    device_->report(shape_.generation, error{errc::aborted, why.text});
    return false;
  }

  std::shared_ptr<gpu_device> device_;
  const collective_shape shape_;
  const sum_layout layout_;
  std::byte* const memory_;
  const std::vector<transfer> transfers_;
  const kernels::sum_arguments sum_;
  nccl::comm comm_{nullptr};
  stage stage_{stage::idle};
  all_reduce_done done_;
  std::optional<error> ended_;
  std::uint64_t sums_{0};
};

namespace {

// What this shape needs, and what it would need with a few ranks less.
std::size_t bytes_to_lend(const collective_shape& shape) {
  std::size_t most = 0;
  for (auto world = shape.world; world > 0 && world + limits::nccl_lost_ranks_max >= shape.world; --world) {
    auto smaller = shape;
    smaller.world = world;
    for (const auto rank : {0U, world - 1}) // the largest shares, and the smallest
      if (const auto layout = sum_layout::of(smaller, rank_id{rank})) most = std::max(most, layout->bytes());
  }
  return most;
}

} // namespace

expected<std::unique_ptr<communicator>>
nccl_communicator::make(std::shared_ptr<gpu_device> on, const collective_shape& shape, comm_request request) {
  auto layout = sum_layout::of(shape, rank_id{request.rank});
  if (!layout) return layout.failure();
  const auto memory = on->lend(std::max(layout->bytes(), bytes_to_lend(shape)));
  if (!memory) return memory.failure();
  auto member = std::make_shared<nccl_member>(on, shape, std::move(*layout), *memory);
  if (auto joined = on->join(std::move(request), member); !joined) {
    on->give_back(*memory);
    return joined.failure();
  }
  return std::unique_ptr<communicator>{new nccl_communicator{std::move(on), std::move(member)}};
}

nccl_communicator::nccl_communicator(std::shared_ptr<gpu_device> on, std::shared_ptr<nccl_member> member)
    : device_{std::move(on)}
    , member_{std::move(member)} {}

nccl_communicator::~nccl_communicator() {
  device_->queue().post([member = member_] { member->leave(); });
}

std::span<float> nccl_communicator::contribution(std::size_t index) {
  return member_->contribution(index);
}

void nccl_communicator::all_reduce(all_reduce_done done) {
  member_->all_reduce(std::move(done));
}

void nccl_communicator::abort() noexcept {
  const auto generation = member_->shape().generation;
  device_->abort(generation, "generation " + to_string(generation) + " was ended");
}

} // namespace troupe
