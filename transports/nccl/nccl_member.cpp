#include "transports/nccl/nccl_member.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

namespace {

nccl_boxes boxes_at(std::byte* memory, const collective_shape& shape, const sum_layout& layout) {
  return {memory + layout.bytes(), shape.group_bytes, shape.world};
}

} // namespace

nccl_member::nccl_member(std::shared_ptr<gpu_device> on, const collective_shape& shape, sum_layout layout,
                         std::uint32_t rank, lent_memory memory)
    : device_{std::move(on)}
    , shape_{shape}
    , rank_{rank}
    , layout_{std::move(layout)}
    , memory_{memory.device}
    , source_{memory.source}
    , target_{memory.target}
    , transfers_{layout_.transfers(memory_)}
    , sum_{layout_.arguments(memory_)}
    , call_{device_->calls(), boxes_at(memory_, shape, layout_)} {}

std::size_t nccl_member::box_bytes(const collective_shape& shape) {
  return shape.group_bytes == 0 ? 0 : nccl_boxes{nullptr, shape.group_bytes, shape.world}.bytes();
}

std::shared_ptr<nccl_seat> nccl_member::seat_of_all() const {
  auto seat = std::make_shared<nccl_seat>();
  seat->rank = rank_;
  seat->members.resize(shape_.world);
  std::iota(seat->members.begin(), seat->members.end(), 0U);
  return seat;
}

std::span<float> nccl_member::contribution(std::size_t index) {
  invariant(index < layout_.own_slots(), "CP-2: a rank contributes one sum for each node it owns");
  auto* const base = source_ != nullptr ? source_ : memory_;
  return {layout_.contribution(base, static_cast<std::uint32_t>(index)), shape_.elements};
}

// --- turns ----------------------------------------------------------------------------------------------

void nccl_member::all_reduce(all_reduce_done done) {
  invariant(!done_, "NC-2: one all-reduce of a rank at a time");
  done_ = std::move(done);
  add(std::nullopt);
}

void nccl_member::start(nccl_pending call) {
  if (auto free = room(*call.seat); !free) return call.done(std::move(free));
  ++call.seat->under_way;
  add(std::move(call));
}

expected<void> nccl_member::room(const nccl_seat& seat) const {
  return ended_ ? expected<void>{} : check_room(seat.under_way);
}

void nccl_member::add(turn made) {
  turns_.push_back(std::move(made));
  if (ended_)
    end_turns();
  else
    advance();
}

nccl_member::turn nccl_member::take_first() {
  auto first = std::move(turns_.front());
  turns_.pop_front();
  if (first) --first->seat->under_way;
  return first;
}

void nccl_member::advance() {
  while (!begun_ && !turns_.empty() && comm_ != nullptr && may_issue()) { // else the poison is on its way
    begun_ = true;
    turns_.front() ? begin_call() : begin_sum();
  }
}

void nccl_member::begin_call() {
  const auto& pending = *turns_.front();
  if (!pending.refused) return finish_call();
  follow(call_.begin(group_comm_, *pending.seat, pending.what, pending.shown));
  device_->look_anew();
}

// What the call's last step made of it.
void nccl_member::follow(nccl_call::progress made) {
  if (made == nccl_call::progress::broken)
    failed(call_.failure());
  else if (made == nccl_call::progress::over && may_issue()) // NS-1
    finish_call();
}

void nccl_member::finish_call() {
  auto over = *take_first();
  begun_ = false;
  if (!over.refused) return over.done(std::move(over.refused));
  const auto result = call_.result();
  if (!result) { // NM-2
    ended_ = error{errc::aborted, ended_text() + " after calls of its ranks that did not fit"};
    device_->report(shape_.generation, *ended_);
  }
  over.done(result);
}

bool nccl_member::look_at_call() {
  follow(call_.look());
  advance();
  return begun_;
}

void nccl_member::retire(const nccl_seat& seat) {
  bool pending = false;
  for (auto& one : turns_) {
    if (!one || one->seat.get() != &seat) continue;
    one->done = [](const expected<void>&) {};
    pending = true;
  }
  if (pending) device_->abort(shape_.generation, ended_text());
}

// In their order, also what is called meanwhile. Of a call that does not fit, this is known already.
void nccl_member::end_turns() {
  if (std::exchange(ending_, true)) return;
  while (!turns_.empty()) {
    auto over = take_first();
    const bool judged = std::exchange(begun_, false) && over && over->refused && !call_.result();
    if (!over)
      std::exchange(done_, {})(*ended_);
    else if (judged)
      over->done(call_.result());
    else
      over->done(*ended_);
  }
  ending_ = false;
}

// --- sums -----------------------------------------------------------------------------------------------

void nccl_member::begin(element_range part) {
  const bool follows = early_.size() == 0 || part.end == early_.begin;
  const bool calm = turns_.empty() && comm_ != nullptr && may_issue();
  if (source_ == nullptr || !follows || !calm || !copy_up(part)) return;
  early_ = {part.begin, early_.size() == 0 ? part.end : early_.end};
}

bool nccl_member::copy_up(element_range part) {
  if (shape_.world == 1 || part.size() == 0) return true; // the sum is the contribution
  for (std::uint32_t index = 0; index < layout_.own_slots(); ++index) {
    auto* const to = layout_.contribution(memory_, index) + part.begin;
    const auto* const from = layout_.contribution(source_, index) + part.begin;
    if (auto copied = device_->calls().copy(to, from, part.size() * sizeof(float)); !copied)
      return failed(copied.failure());
  }
  return true;
}

void nccl_member::begin_sum() {
  arrived_.fetch_add(1);
  const auto early = std::exchange(early_, {});
  if (source_ != nullptr && (!copy_up({0, early.begin}) || !copy_up({early.end, shape_.elements}))) return;
  if (shape_.world == 1) {
    (void)mark();
  } else {
    stage_ = stage::exchanging;
    after(device_->calls().exchange(comm_, transfers_));
  }
  device_->look_anew();
}

bool nccl_member::look_at_sum() {
  const auto answer = device_->calls().status(comm_);
  if (answer.under_way()) return true;
  if (answer.failed()) return device_->report(shape_.generation, answer), false;
  if (stage_ == stage::exchanging) return add_and_gather();
  if (stage_ == stage::gathering) return copy_down_and_mark();
  return finish_when_reached();
}

bool nccl_member::add_and_gather() {
  auto& calls = device_->calls();
  if (auto added = calls.sum(sum_); !added) return failed(added.failure());
  stage_ = stage::gathering;
  return after(calls.all_gather(comm_, layout_.own_slice(memory_), layout_.sum(memory_), layout_.slice()));
}

bool nccl_member::copy_down_and_mark() {
  if (source_ == nullptr) return mark();
  const auto bytes = shape_.elements * sizeof(float);
  const auto copied = device_->calls().copy(target_, layout_.sum(memory_), bytes);
  return copied ? mark() : failed(copied.failure());
}

bool nccl_member::mark() {
  stage_ = stage::marked;
  const auto marked = device_->calls().mark();
  return marked ? true : failed(marked.failure());
}

// One rank alone: its contribution.
std::span<const float> nccl_member::sum_here() {
  if (source_ == nullptr) return {layout_.sum(memory_), shape_.elements};
  if (shape_.world == 1) return contribution(0);
  return {reinterpret_cast<const float*>(target_), shape_.elements};
}

bool nccl_member::finish_when_reached() {
  const auto reached = device_->calls().reached();
  if (!reached) return failed(reached.failure());
  if (!*reached) return true;
  if (!may_issue()) return false; // NS-1
  stage_ = stage::idle;
  turns_.pop_front();
  begun_ = false;
  const reduction made{sum_here(), ++sums_};
  std::exchange(done_, {})(made);
  advance();
  return begun_; // the completion may have begun the next one
}

bool nccl_member::after(const nccl_answer& answer) {
  if (answer.failed()) device_->report(shape_.generation, answer);
  return !answer.failed();
}

bool nccl_member::failed(const error& why) {
  device_->report(shape_.generation, error{errc::aborted, why.text});
  return false;
}

// --- the device -----------------------------------------------------------------------------------------

void nccl_member::ready(std::span<const nccl::comm> on) {
  const auto tables = layout_.tables(memory_); // nothing is under way: the copy does not wait
  if (auto copied = device_->calls().copy(layout_.tables_at(memory_), tables.data(), tables.size()); !copied)
    return device_->report(shape_.generation, copied.failure());
  comm_ = on.front();
  group_comm_ = on.back();
  advance();
}

void nccl_member::poison(const error& why) {
  if (!ended_) ended_ = why;
  comm_ = nullptr;
  stage_ = stage::idle;
  end_turns();
}

bool nccl_member::look() {
  if (!begun_ || turns_.empty()) return false;
  return turns_.front() ? look_at_call() : look_at_sum();
}

void nccl_member::leave() {
  if (!turns_.empty()) device_->abort(shape_.generation, ended_text());
  poison({errc::aborted, ended_text()});
  device_->leave(shape_.generation);
  for (auto* const lent : {memory_, source_, target_})
    if (lent != nullptr) device_->give_back(lent);
}

std::string nccl_member::ended_text() const {
  return "generation " + to_string(shape_.generation) + " was ended";
}

} // namespace troupe
