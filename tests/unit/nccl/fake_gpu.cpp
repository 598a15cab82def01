#include "tests/unit/nccl/fake_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "tests/unit/nccl/plain_kernels.hpp"

namespace troupe::fake {

namespace {

const nccl_answer under_way{nccl::result::in_progress, {}};

fake_comm& of(nccl::comm handle) {
  return *reinterpret_cast<fake_comm*>(handle);
}
nccl::comm handle_of(fake_comm& one) {
  return reinterpret_cast<nccl::comm>(&one);
}
bool contains(std::span<const std::byte> range, const void* memory) {
  const std::less<const void*> before;
  return !before(memory, range.data()) && before(memory, range.data() + range.size());
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

// The exchange at the head of a stream: each part that can move, or its end.
void fake_hub::add_exchange(fake_gpu& gpu, std::vector<std::function<void()>>& all) {
  auto& head = gpu.stream_.front();
  if (head.left.empty()) return all.push_back([&gpu] { gpu.stream_.pop_front(); });
  const auto met = peers(*head.on);
  std::set<std::uint32_t> seen; // only the first part from each peer
  for (const auto& part : head.left) {
    if (part.to == nullptr || !seen.insert(part.peer).second) continue;
    const auto* peer = met[part.peer];
    if (peer == nullptr || peer->of->dead || peer->of->stream_.empty()) continue;
    auto& theirs = peer->of->stream_.front();
    if (theirs.on != peer) continue;
    const auto sent = std::ranges::find_if(theirs.left, [&](const transfer& other) {
      return other.to == nullptr && other.peer == head.on->rank;
    });
    if (sent == theirs.left.end()) continue;
    all.push_back([this, &head, &theirs, to = part, from = *sent] {
      if (to.bytes != from.bytes) violate("SL-2: a part is received with another size than it is sent");
      std::memcpy(to.to, from.from, std::min(to.bytes, from.bytes));
      std::erase_if(head.left, [&](const transfer& one) { return one.to == to.to; });
      theirs.left.erase(std::ranges::find_if(theirs.left, [&](const transfer& one) {
        return one.to == nullptr && one.peer == from.peer && one.from == from.from;
      }));
    });
  }
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
    if (gpu->stream_.front().on != nullptr)
      add_exchange(*gpu, all);
    else
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

void fake_gpu::check_handed_over(const char* call) {
  check_owner(call);
  for (const auto& one : hub_.comms_)
    if (one.of == this && one.issuing)
      hub_.violate(std::string{call} + " before what it follows is on the stream");
}

void fake_gpu::launch(std::function<void()> kernel) {
  check_owner("a kernel");
  push({.left = {}, .run = std::move(kernel)});
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
      work.run = [left = std::move(work.left)] {
        for (const auto& part : left)
          if (part.to != nullptr) std::memset(part.to, 0xff, part.bytes); // NaNs
      };
    }
}

nccl_answer fake_gpu::issue(fake_comm& one, std::vector<transfer> parts) {
  for (const auto& part : parts) {
    if (part.bytes == 0 || part.peer == one.rank || part.peer >= one.world)
      hub_.violate("a part without bytes, or a peer");
    if (!is_on_device(part.to == nullptr ? part.from : part.to))
      hub_.violate("NG-1: the library sees memory that is not lent");
  }
  one.issuing = [this, &one, parts = std::move(parts)] { push({.on = &one, .left = parts, .run = {}}); };
  return under_way;
}

nccl_answer fake_gpu::exchange(nccl::comm on, std::span<const transfer> parts) {
  return issue(ready_to_issue(on, "exchange"), {parts.begin(), parts.end()});
}

nccl_answer fake_gpu::all_gather(nccl::comm on, const float* own, float* all, std::size_t elements) {
  auto& one = ready_to_issue(on, "all_gather");
  if (own != all + one.rank * elements) hub_.violate("an all-gather in place lies elsewhere");
  const auto bytes = elements * sizeof(float);
  std::vector<transfer> parts;
  for (std::uint32_t peer = 0; peer < one.world; ++peer) {
    if (peer == one.rank) continue;
    parts.push_back({.peer = peer, .from = own, .bytes = bytes});
    parts.push_back({.peer = peer, .to = all + peer * elements, .bytes = bytes});
  }
  return issue(one, std::move(parts));
}

expected<void> fake_gpu::sum(const kernels::sum_arguments& what) {
  check_handed_over("a sum");
  push({.left = {}, .run = [what] { kernels::plain::sum(what); }});
  return {};
}

expected<void> fake_gpu::reduce(const kernels::reduce_arguments& what) {
  check_handed_over("a reduction");
  push({.left = {}, .run = [what] { kernels::plain::reduce(what); }});
  return {};
}

// With memory of the host: at once, after what is on the stream.
expected<void> fake_gpu::copy(void* to, const void* from, std::size_t bytes) {
  check_handed_over("a copy");
  if (is_here(to) && is_here(from)) {
    push({.left = {}, .run = [=] { std::memmove(to, from, bytes); }});
    return {};
  }
  for (; !stream_.empty(); stream_.pop_front()) {
    if (stream_.front().on != nullptr) {
      hub_.violate("a copy that waits for what may hang");
      break;
    }
    const auto run = std::move(stream_.front().run);
    run();
  }
  std::memcpy(to, from, bytes);
  return {};
}

void fake_gpu::adopt(std::span<const std::byte> memory) {
  if (!memory.empty()) adopted_.push_back(memory);
}

bool fake_gpu::is_on_device(const void* memory) const {
  return std::ranges::any_of(memory_, [&](const auto& each) {
    return each.second.where == memory_place::device && contains({each.first, each.second.size}, memory);
  });
}

bool fake_gpu::is_here(const void* memory) const {
  const auto allocated = [&](const auto& each) { return contains({each.first, each.second.size}, memory); };
  return std::ranges::any_of(memory_, allocated) ||
         std::ranges::any_of(adopted_, [&](const auto& one) { return contains(one, memory); });
}

expected<void> fake_gpu::mark() {
  check_handed_over("a mark");
  push({.left = {}, .run = [this, number = ++marks_] { marks_reached_ = number; }});
  return {};
}

expected<bool> fake_gpu::reached() {
  check_owner("reached");
  return marks_reached_ == marks_;
}

expected<std::byte*> fake_gpu::allocate(std::size_t bytes, memory_place where) {
  check_calm("allocate");
  auto raw = std::make_unique<std::byte[]>(bytes + 64);
  auto* const aligned = raw.get() + (64 - reinterpret_cast<std::uintptr_t>(raw.get()) % 64) % 64;
  memory_[aligned] = {std::move(raw), bytes, where};
  return aligned;
}

void fake_gpu::release(std::byte* memory, memory_place where) {
  check_calm("release");
  if (memory_.at(memory).where != where) hub_.violate("memory is released as what it is not");
  if (!stream_.empty()) hub_.violate("NC-11: memory freed while the stream may use it");
  memory_.erase(memory);
}

} // namespace troupe::fake
