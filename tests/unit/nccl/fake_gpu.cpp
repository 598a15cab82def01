#include "tests/unit/nccl/fake_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/unit/nccl/plain_kernels.hpp"

namespace troupe::fake {

namespace {

constexpr auto nan_value = std::numeric_limits<float>::quiet_NaN();
const nccl_answer under_way{nccl::result::in_progress, {}};

fake_comm& of(nccl::comm handle) {
  return *reinterpret_cast<fake_comm*>(handle);
}
nccl::comm handle_of(fake_comm& one) {
  return reinterpret_cast<nccl::comm>(&one);
}
nccl_answer invalid(const char* why) {
  return {nccl::result::invalid_usage, why};
}

} // namespace

// --- the hub ---

std::vector<fake_comm*> fake_hub::peers(const fake_comm& one) {
  std::vector<fake_comm*> all(one.world, nullptr);
  for (auto& other : comms_)
    if (other.meeting == one.meeting) all[other.rank] = &other;
  return all;
}

// Has every rank of the communicator come as far as this operation? Who was aborted takes part in nothing.
bool fake_hub::all_at(const fake_work& work) {
  const auto all = peers(*work.on);
  return std::ranges::all_of(all, [&](const fake_comm* peer) {
    if (peer == nullptr || peer->of->dead || peer->now == fake_comm::phase::aborted) return false;
    if (peer->issued < work.number || (peer->issued == work.number && peer->issuing)) return false;
    // Its stream has reached the operation, or passed it.
    const auto& stream = peer->of->stream_;
    const auto at = std::ranges::find_if(
        stream, [&](const fake_work& other) { return other.on == peer && other.number == work.number; });
    return at == stream.end() || at == stream.begin();
  });
}

std::vector<std::function<void()>> fake_hub::moves() {
  std::vector<std::function<void()>> all;
  for (auto& one : comms_) {
    if (one.of->dead) continue;
    if (one.now == fake_comm::phase::joining) {
      const auto met = peers(one);
      const bool complete = std::ranges::all_of(
          met, [](const fake_comm* peer) { return peer != nullptr && !peer->gone() && !peer->of->dead; });
      if (complete) all.push_back([&one] { one.now = fake_comm::phase::live; });
    } else if (one.now == fake_comm::phase::finalizing) {
      all.push_back([&one] { one.now = fake_comm::phase::finalized; });
    } else if (one.now == fake_comm::phase::revoking) {
      all.push_back([&one] {
        one.of->drop_aborted(one);
        one.now = fake_comm::phase::revoked;
      });
    } else if (one.issuing) {
      all.push_back([&one] { std::exchange(one.issuing, nullptr)(); });
    }
  }
  for (auto* gpu : gpus_) {
    if (gpu->dead || gpu->stream_.empty()) continue;
    const auto& head = gpu->stream_.front();
    if (head.on == nullptr || all_at(head))
      all.push_back([gpu] {
        const auto work = std::move(gpu->stream_.front());
        gpu->stream_.pop_front();
        work.run();
      });
  }
  return all;
}

// --- one device ---

fake_gpu::fake_gpu(fake_hub& hub, std::uint32_t number)
    : hub_{hub}
    , owner_{std::to_string(number)} {
  hub_.gpus_.push_back(this);
}

fake_gpu::~fake_gpu() {
  std::erase(hub_.gpus_, this);
}

void fake_gpu::check_owner(const char* call) {
  if (hub_.thread != "owner " + owner_)
    hub_.violate(std::string{"NC-8: "} + call + " of device " + owner_ + " from another thread");
}

fake_comm& fake_gpu::checked(nccl::comm which, const char* call) {
  check_owner(call);
  auto& one = of(which);
  if (one.gone()) hub_.violate(std::string{"NC-5: "} + call + " after an abort");
  if (one.of != this) hub_.violate(std::string{call} + " on another device's communicator");
  return one;
}

fake_comm& fake_gpu::ready_to_issue(nccl::comm which, const char* call) {
  auto& one = checked(which, call);
  if (one.now != fake_comm::phase::live) hub_.violate(std::string{"NC-2: "} + call + " before it is ready");
  if (one.issuing) hub_.violate(std::string{call} + " while an earlier one is in progress");
  return one;
}

void fake_gpu::check_calm(const char* call) {
  check_owner(call);
  if (aborts_pending > 0) hub_.violate(std::string{"NC-7: "} + call + " before an abort returned");
  for (const auto& one : hub_.comms_)
    if (one.of == this && one.now == fake_comm::phase::revoking)
      hub_.violate(std::string{"NC-7: "} + call + " while a communicator is revoked");
}

void fake_gpu::break_peers() {
  for (const auto& own : hub_.comms_)
    if (own.of == this && !own.gone())
      for (auto* peer : hub_.peers(own))
        if (peer != nullptr && peer->of != this) peer->broken = true;
}

expected<nccl::unique_id> fake_gpu::make_unique_id() {
  nccl::unique_id id{};
  const auto name = "meeting" + std::to_string(++hub_.ids_);
  std::memcpy(id.bytes, name.data(), name.size());
  return id;
}

nccl_answer fake_gpu::init(nccl::comm& into, const nccl::unique_id& id, std::uint32_t world,
                           std::uint32_t rank) {
  check_owner("init");
  into = handle_of(hub_.comms_.emplace_back(
      fake_comm{.of = this, .meeting = std::string{id.bytes}, .world = world, .rank = rank}));
  return under_way;
}

nccl_answer fake_gpu::shrink(nccl::comm parent, std::span<const int> without, nccl::comm& into) {
  auto& one = checked(parent, "shrink");
  if (!hub_.has.shrink) hub_.violate("NC-9: shrink");
  drop_aborted(one); // NCCL_SHRINK_ABORT
  std::string name = one.meeting + " without";
  auto rank = one.rank;
  for (const auto gone : without) {
    name += ' ' + std::to_string(gone);
    if (static_cast<std::uint32_t>(gone) < one.rank) --rank;
  }
  into = handle_of(
      hub_.comms_.emplace_back(fake_comm{.of = this,
                                         .meeting = std::move(name),
                                         .world = one.world - static_cast<std::uint32_t>(without.size()),
                                         .rank = rank}));
  return under_way;
}

nccl_answer fake_gpu::revoke(nccl::comm which) {
  auto& one = checked(which, "revoke");
  if (!hub_.has.revoke) hub_.violate("NC-9: revoke");
  if (one.now != fake_comm::phase::live) {
    hub_.violate("NC-6: revoke twice, or of what is not live");
    return invalid("revoke");
  }
  one.issuing = nullptr;
  one.now = fake_comm::phase::revoking;
  return under_way;
}

nccl_answer fake_gpu::finalize(nccl::comm which) {
  auto& one = checked(which, "finalize");
  if (one.now != fake_comm::phase::live) {
    hub_.violate("NC-6: finalize of what is not live");
    return invalid("finalize");
  }
  one.now = fake_comm::phase::finalizing;
  return under_way;
}

nccl_answer fake_gpu::destroy(nccl::comm which) {
  auto& one = checked(which, "destroy");
  if (one.now != fake_comm::phase::finalized) hub_.violate("NC-6: destroy without finalize");
  one.now = fake_comm::phase::destroyed;
  return {};
}

nccl_answer fake_gpu::status(nccl::comm which) {
  const auto& one = checked(which, "status");
  if (one.broken && one.now != fake_comm::phase::revoking && one.now != fake_comm::phase::revoked)
    return {nccl::result::remote_error, "a peer is gone"};
  const bool busy = one.now == fake_comm::phase::joining || one.now == fake_comm::phase::finalizing ||
                    one.now == fake_comm::phase::revoking || one.issuing;
  return busy ? under_way : nccl_answer{};
}

nccl_answer fake_gpu::abort(std::span<const nccl::comm> all) {
  if (hub_.thread != "expendable " + owner_) hub_.violate("NC-8: abort not on an expendable thread");
  for (const auto handle : all) {
    auto& one = of(handle);
    if (one.gone()) hub_.violate("NC-5: aborted twice");
    one.issuing = nullptr;
    one.now = fake_comm::phase::aborted;
    drop_aborted(one);
  }
  return {};
}

// Frees the stream of the communicator's operations. What they should have written is poison.
void fake_gpu::drop_aborted(fake_comm& which) {
  for (auto& work : stream_)
    if (work.on == &which) {
      work.on = nullptr;
      work.run = work.spoil;
    }
}

void fake_gpu::send(const fake_comm& on, std::uint32_t peer, const float* part) {
  std::erase_if(sent_, [&](const parcel& old) { return old.on == &on && old.number + 4 < on.issued; });
  if (parcel_for(on, on.issued, peer) == nullptr) sent_.push_back({&on, on.issued, peer, {}});
  const_cast<parcel*>(parcel_for(on, on.issued, peer))->parts.push_back(part);
}

const fake_gpu::parcel* fake_gpu::parcel_for(const fake_comm& on, std::uint64_t number,
                                             std::uint32_t peer) const {
  const auto found = std::ranges::find_if(sent_, [&](const parcel& each) {
    return each.on == &on && each.number == number && each.peer == peer;
  });
  return found == sent_.end() ? nullptr : &*found;
}

nccl_answer fake_gpu::exchange(nccl::comm on, std::span<const transfer> parts, std::size_t elements) {
  auto& one = ready_to_issue(on, "exchange");
  const auto number = ++one.issued;
  for (const auto& part : parts)
    if (part.to == nullptr) send(one, part.peer, part.from);
  std::vector<transfer> received;
  std::ranges::copy_if(parts, std::back_inserter(received),
                       [](const transfer& p) { return p.to != nullptr; });
  fake_work work{.on = &one, .number = number};
  work.run = [this, &one, number, received, elements] {
    std::map<std::uint32_t, std::size_t> taken;
    const auto peers = hub_.peers(one);
    for (const auto& part : received) {
      const auto* from = peers[part.peer]->of->parcel_for(*peers[part.peer], number, one.rank);
      const auto place = taken[part.peer]++;
      if (from == nullptr || place >= from->parts.size()) {
        hub_.violate("SL-2: a receive without its send");
        continue;
      }
      std::memcpy(part.to, from->parts[place], elements * sizeof(float));
    }
  };
  work.spoil = [received, elements] {
    for (const auto& part : received)
      std::fill_n(part.to, elements, nan_value);
  };
  one.issuing = [this, work = std::move(work)] { push(work); };
  return under_way;
}

nccl_answer fake_gpu::all_gather(nccl::comm on, const float* own, float* all, std::size_t elements) {
  auto& one = ready_to_issue(on, "all_gather");
  if (own != all + one.rank * elements) hub_.violate("an all-gather in place lies elsewhere");
  const auto number = ++one.issued;
  send(one, one.rank, own);
  fake_work work{.on = &one, .number = number};
  work.run = [this, &one, number, all, elements] {
    for (const auto* peer : hub_.peers(one)) {
      if (peer == &one) continue;
      const auto* from = peer->of->parcel_for(*peer, number, peer->rank);
      std::memcpy(all + peer->rank * elements, from->parts[0], elements * sizeof(float));
    }
  };
  work.spoil = [all, elements, world = one.world] { std::fill_n(all, elements * world, nan_value); };
  one.issuing = [this, work = std::move(work)] { push(work); };
  return under_way;
}

expected<void> fake_gpu::sum(const kernels::sum_arguments& what) {
  check_owner("sum");
  for (const auto& one : hub_.comms_)
    if (one.of == this && one.issuing) hub_.violate("a sum before its exchange is on the stream");
  push({.run = [what] { kernels::plain::sum(what); }});
  return {};
}

expected<void> fake_gpu::copy(void* to, const void* from, std::size_t bytes) {
  check_owner("copy");
  if (!stream_.empty()) hub_.violate("a copy that waits for what may hang");
  std::memcpy(to, from, bytes);
  return {};
}

expected<void> fake_gpu::mark() {
  check_owner("mark");
  push({.run = [this, number = ++marks_] { marks_reached_ = number; }});
  return {};
}

expected<bool> fake_gpu::reached() {
  check_owner("reached");
  return marks_reached_ == marks_;
}

expected<std::byte*> fake_gpu::allocate(std::size_t bytes) {
  check_calm("allocate");
  auto block = std::make_unique<std::byte[]>(bytes + 64);
  auto* const aligned = block.get() + (64 - reinterpret_cast<std::uintptr_t>(block.get()) % 64) % 64;
  memory_[aligned] = std::move(block);
  return aligned;
}

void fake_gpu::release(std::byte* memory) {
  check_calm("release");
  if (!stream_.empty()) hub_.violate("NC-11: memory freed while the stream may use it");
  memory_.erase(memory);
}

} // namespace troupe::fake
