// libfake_nccl.so: a FAKE of NCCL that moves real bytes between real processes, through shared memory, on
// streams of the fake CUDA runtime. No GPU takes part. It exports the names that the loader binds, with
// NCCL's rules: nothing blocks but an abort; a group is in progress until it is asked for; an operation hangs
// until all take part or its communicator is aborted; wrong use is refused; wrong threads end the process.
// A stream that cannot go on sleeps until a peer has moved something or its communicator is aborted: on a
// busy machine one that spins takes the time that its peers need.
//
// FAKE_NCCL_VERSION (22809) is what it says it is; FAKE_NCCL_ABORT=hang lets the abort of
// a communicator whose ranks have met never return. FAKE_NCCL_BREAK=N: the N-th all-gather of a process
// fails; with FAKE_NCCL_BREAK_RANK only at that rank.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "transports/nccl/cuda_api.hpp"
#include "transports/nccl/nccl_api.hpp"
#include "transports/shm/futex.hpp"

using troupe::nccl::config;
using troupe::nccl::data_type;
using troupe::nccl::result;
using troupe::nccl::unique_id;

extern "C" troupe::cuda::status cudaLaunchHostFunc(CUstream_st* stream, void (*function)(void*), void* data);

namespace {

constexpr int ranks_max = 8;
constexpr int levels = 3;                      // a communicator, and those shrunk from it
constexpr std::size_t ring_bytes = 512 * 1024; // touched where used

// From one rank to another.
struct ring {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> taken;
  char bytes[ring_bytes];
};
struct level {
  std::atomic<std::uint32_t> joined[ranks_max];
  std::atomic<std::uint32_t> bells[ranks_max]; // rung when there may be something to do for that rank
  ring rings[ranks_max][ranks_max];
};
struct segment {
  level at[levels];
};

struct part { // of a group
  char* bytes;
  std::size_t left;
  int peer;
  bool sends;
};

[[noreturn]] void die(const char* rule) {
  std::fprintf(stderr, "fake NCCL: %s\n", rule);
  std::abort();
}

} // namespace

struct ncclComm {
  enum class phase : std::uint8_t { joining, live, finalizing, revoked, gone };
  segment* shared{nullptr};
  int depth{0};
  int world{1};
  int rank{0};
  phase now{phase::joining};
  std::thread::id owner{std::this_thread::get_id()};
  std::atomic<bool> aborted{false};
  std::atomic<int> on_stream{0};
  std::function<void()> issuing;

  [[nodiscard]] level& here() const { return shared->at[depth]; }
  void check() const {
    if (now == phase::gone) die("a communicator is used after its end");
    if (std::this_thread::get_id() != owner) die("NC-8: one thread issues every call of a device");
  }
};

namespace {

struct group {
  int depth{0};
  ncclComm* on{nullptr};
  CUstream_st* stream{nullptr};
  std::vector<part> parts;
};
thread_local group open_group;

constexpr std::int64_t sleep_ms_max = 10'000; // nothing relies on it: who changes something rings

void ring_for(level& at, int rank) {
  at.bells[rank].fetch_add(1);
  troupe::futex_wake_all(at.bells[rank]);
}

void stop(ncclComm& on) {
  on.aborted = true;
  ring_for(on.here(), on.rank);
}

// Moves what can be moved now; false when nothing could.
bool progress(ncclComm& on, part& one) {
  auto& lane = one.sends ? on.here().rings[on.rank][one.peer] : on.here().rings[one.peer][on.rank];
  const auto written = lane.written.load(std::memory_order_acquire);
  const auto taken = lane.taken.load(std::memory_order_acquire);
  const auto at = (one.sends ? written : taken) % ring_bytes;
  const auto possible = one.sends ? ring_bytes - (written - taken) : written - taken;
  const auto count = std::min({one.left, static_cast<std::size_t>(possible), ring_bytes - at});
  if (count == 0) return false;
  if (one.sends)
    std::memcpy(lane.bytes + at, one.bytes, count);
  else
    std::memcpy(one.bytes, lane.bytes + at, count);
  (one.sends ? lane.written : lane.taken).fetch_add(count, std::memory_order_release);
  ring_for(on.here(), one.peer);
  one.bytes += count;
  one.left -= count;
  return true;
}

// On the stream: all parts side by side; those of one peer and direction in turn.
void run(ncclComm& on, std::vector<part>& parts) {
  auto& bell = on.here().bells[on.rank];
  for (bool all_done = false; !all_done;) {
    const auto rung = bell.load(); // before the looks: what comes after them has rung again
    if (on.aborted) break;
    bool moved = false;
    all_done = true;
    bool busy[2][ranks_max]{};
    for (auto& one : parts) {
      if (one.left == 0 || std::exchange(busy[one.sends ? 1 : 0][one.peer], true)) continue;
      moved = progress(on, one) || moved;
      all_done = all_done && one.left == 0;
    }
    for (const auto& one : parts)
      all_done = all_done && one.left == 0;
    if (!moved && !all_done) troupe::futex_wait(bell, rung, sleep_ms_max);
  }
  if (on.aborted) // what was under way is poison
    for (auto& one : parts)
      if (!one.sends) std::memset(one.bytes, 0xff, one.left);
  --on.on_stream;
  on.on_stream.notify_all();
}

result issue(ncclComm& on, CUstream_st* stream, std::vector<part> parts) {
  if (on.now != ncclComm::phase::live || on.issuing || on.aborted) return result::invalid_usage;
  on.issuing = [&on, stream, parts = std::move(parts)] {
    struct call {
      ncclComm* on;
      std::vector<part> parts;
    };
    ++on.on_stream;
    (void)cudaLaunchHostFunc(
        stream,
        [](void* data) {
          auto* const one = static_cast<call*>(data);
          run(*one->on, one->parts);
          delete one;
        },
        new call{&on, parts});
  };
  return result::in_progress;
}

result add(ncclComm* on, CUstream_st* stream, part one) {
  on->check();
  if (one.peer < 0 || one.peer >= on->world || one.peer == on->rank) return result::invalid_argument;
  if (open_group.depth == 0) return issue(*on, stream, {one});
  open_group.on = on;
  open_group.stream = stream;
  open_group.parts.push_back(one);
  return result::success;
}

std::atomic<int> gathers{0}; // of this process

std::size_t size_of(data_type type) {
  return type == data_type::bytes ? 1 : sizeof(float);
}

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

bool everybody_joined(const ncclComm& on) {
  for (int rank = 0; rank < on.world; ++rank)
    if (on.here().joined[rank] == 0) return false;
  return true;
}

bool everything_taken(const ncclComm& on) {
  for (int peer = 0; peer < on.world; ++peer) {
    const auto& lane = on.here().rings[on.rank][peer];
    if (lane.written != lane.taken) return false;
  }
  return true;
}

} // namespace

extern "C" {

result ncclGetVersion(int* version) {
  *version = number("FAKE_NCCL_VERSION", 22809);
  return result::success;
}

// The meeting place is an anonymous file of this process; it lives as long as that.
result ncclGetUniqueId(unique_id* id) {
  const int file = ::memfd_create("fake_nccl", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, sizeof(segment)) != 0) return result::system_error;
  *id = {};
  std::snprintf(id->bytes, sizeof id->bytes, "/proc/%d/fd/%d", static_cast<int>(::getpid()), file);
  return result::success;
}

result ncclCommInitRankConfig(ncclComm** comm, int world, unique_id id, int rank, config* settings) {
  if (settings->magic != 0xcafebeef || settings->blocking != 0 || world > ranks_max || rank >= world)
    return result::invalid_argument;
  const int file = ::open(id.bytes, O_RDWR | O_CLOEXEC);
  if (file < 0) return result::system_error;
  void* const memory = ::mmap(nullptr, sizeof(segment), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) return result::system_error;
  *comm = new ncclComm{.shared = static_cast<segment*>(memory), .world = world, .rank = rank};
  if ((*comm)->here().joined[rank].exchange(1) != 0) return result::invalid_usage;
  return result::in_progress;
}

result ncclCommGetAsyncError(ncclComm* on, result* said) {
  on->check();
  *said = result::success;
  switch (on->now) {
  case ncclComm::phase::joining:
    if (everybody_joined(*on)) on->now = ncclComm::phase::live;
    *said = result::in_progress; // also for the one look after that
    break;
  case ncclComm::phase::live:
    if (!on->issuing) break;
    std::exchange(on->issuing, nullptr)();
    *said = result::in_progress;
    break;
  case ncclComm::phase::finalizing:
    if (on->on_stream != 0 || !everything_taken(*on)) *said = result::in_progress;
    break;
  case ncclComm::phase::revoked:
    if (on->on_stream != 0) *said = result::in_progress;
    break;
  case ncclComm::phase::gone:
    break;
  }
  return result::success;
}

result ncclCommFinalize(ncclComm* on) {
  on->check();
  if (on->now != ncclComm::phase::live) return result::invalid_usage;
  on->now = ncclComm::phase::finalizing;
  return result::in_progress;
}

result ncclCommRevoke(ncclComm* on, int flags) {
  on->check();
  if (on->now != ncclComm::phase::live || flags != 0) return result::invalid_usage;
  on->issuing = nullptr;
  stop(*on);
  on->now = ncclComm::phase::revoked;
  return result::in_progress;
}

result ncclCommShrink(ncclComm* parent, int* without, int count, ncclComm** comm, config*, int flags) {
  parent->check();
  if (flags != troupe::nccl::shrink_abort || parent->depth + 1 == levels) return result::invalid_argument;
  parent->issuing = nullptr;
  stop(*parent);
  int rank = parent->rank;
  for (int i = 0; i < count; ++i)
    if (without[i] < parent->rank) --rank;
  *comm = new ncclComm{
      .shared = parent->shared, .depth = parent->depth + 1, .world = parent->world - count, .rank = rank};
  (*comm)->here().joined[rank] = 1;
  return result::in_progress;
}

// Communicators are never freed: work on a stream may still name them.
result ncclCommDestroy(ncclComm* on) {
  on->check();
  if (on->now != ncclComm::phase::finalizing) return result::invalid_usage;
  on->now = ncclComm::phase::gone;
  return result::success;
}

result ncclCommAbort(ncclComm* on) {
  if (on->now == ncclComm::phase::gone) die("a communicator is aborted twice");
  const char* const how = std::getenv("FAKE_NCCL_ABORT");
  while (how != nullptr && std::string_view{how} == "hang" && on->now != ncclComm::phase::joining)
    ::pause();
  stop(*on);
  on->issuing = nullptr;
  on->now = ncclComm::phase::gone;
  for (int left = on->on_stream; left != 0; left = on->on_stream)
    on->on_stream.wait(left); // it blocks, as the real one may
  return result::success;
}

const char* ncclGetErrorString(result) {
  return "an error of the fake NCCL";
}
const char* ncclGetLastError(ncclComm*) {
  return "";
}

result ncclGroupStart() {
  ++open_group.depth;
  return result::success;
}
result ncclGroupEnd() {
  if (open_group.depth == 0) return result::invalid_usage;
  if (--open_group.depth > 0 || open_group.on == nullptr) return result::success;
  auto whole = std::exchange(open_group, {});
  return issue(*whole.on, whole.stream, std::move(whole.parts));
}

result ncclSend(const void* from, std::size_t count, data_type type, int peer, ncclComm* on,
                CUstream_st* stream) {
  auto* const bytes = static_cast<char*>(const_cast<void*>(from));
  return add(on, stream, {bytes, count * size_of(type), peer, true});
}
result ncclRecv(void* to, std::size_t count, data_type type, int peer, ncclComm* on, CUstream_st* stream) {
  return add(on, stream, {static_cast<char*>(to), count * size_of(type), peer, false});
}

result ncclAllGather(const void* own, void* all, std::size_t count, data_type type, ncclComm* on,
                     CUstream_st* stream) {
  on->check();
  const auto bytes = count * size_of(type);
  auto* const place = static_cast<char*>(all);
  auto* const mine = static_cast<char*>(const_cast<void*>(own));
  if (mine != place + static_cast<std::size_t>(on->rank) * bytes) return result::invalid_argument;
  const bool may_break = on->rank == number("FAKE_NCCL_BREAK_RANK", on->rank);
  if (++gathers == number("FAKE_NCCL_BREAK", 0) && may_break) return result::system_error;
  std::vector<part> parts;
  for (int peer = 0; peer < on->world; ++peer) {
    if (peer == on->rank) continue;
    parts.push_back({mine, bytes, peer, true});
    parts.push_back({place + static_cast<std::size_t>(peer) * bytes, bytes, peer, false});
  }
  return issue(*on, stream, std::move(parts));
}

} // extern "C"
