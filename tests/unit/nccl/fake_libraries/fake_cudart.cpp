// libfake_cudart.so: a FAKE of the CUDA runtime. Device memory is the host's, a stream is a thread, no GPU
// takes part. It exports the names that the loader binds, with CUDA's rules of order: work on a stream runs
// in turn and later; copies of pageable memory wait for what is on the stream before them.
//
// FAKE_CUDA_DEVICES (8) and FAKE_CUDA_DRIVER (13000) say what the machine has.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>

#include "transports/nccl/cuda_api.hpp"

using troupe::cuda::copy_kind;
using troupe::cuda::status;

struct CUstream_st {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool busy{false};
  bool ends{false};
  std::thread thread;

  CUstream_st()
      : thread{[this] { serve(); }} {}
  ~CUstream_st() {
    {
      const std::lock_guard lock{mutex};
      ends = true;
    }
    changed.notify_all();
    thread.join();
  }
  void push(std::function<void()> one) {
    {
      const std::lock_guard lock{mutex};
      work.push_back(std::move(one));
    }
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock{mutex};
    changed.wait(lock, [this] { return work.empty() && !busy; });
  }
  void serve() {
    std::unique_lock lock{mutex};
    for (;;) {
      changed.wait(lock, [this] { return !work.empty() || ends; });
      if (work.empty()) return;
      const auto one = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      one();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

struct CUevent_st {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> reached{0};
};

namespace {

int number(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

constexpr int runtime_version = 13000;

// What was allocated here, as memory of the device or as pinned memory of the host: copied in stream order.
struct known_blocks {
  std::mutex mutex;
  std::map<const std::byte*, std::size_t> blocks;
  bool has(const void* memory) {
    const std::lock_guard lock{mutex};
    const auto after = blocks.upper_bound(static_cast<const std::byte*>(memory));
    if (after == blocks.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return static_cast<const std::byte*>(memory) < begin + bytes;
  }
};
known_blocks memory_here;

void* make_block(std::size_t bytes) {
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  const std::lock_guard lock{memory_here.mutex};
  memory_here.blocks[static_cast<const std::byte*>(memory)] = bytes;
  return memory;
}

void free_block(void* memory) {
  {
    const std::lock_guard lock{memory_here.mutex};
    memory_here.blocks.erase(static_cast<const std::byte*>(memory));
  }
  std::free(memory);
}

} // namespace

extern "C" {

int troupe_fake_library() {
  return 1;
}
status cudaRuntimeGetVersion(int* version) {
  *version = runtime_version;
  return status::success;
}
status cudaDriverGetVersion(int* version) {
  *version = number("FAKE_CUDA_DRIVER", runtime_version);
  return status::success;
}
status cudaGetDeviceCount(int* count) {
  if (number("FAKE_CUDA_DRIVER", runtime_version) < runtime_version) return status::insufficient_driver;
  *count = number("FAKE_CUDA_DEVICES", 8);
  return *count == 0 ? status::no_device : status::success;
}
status cudaSetDevice(int) {
  return status::success;
}
const char* cudaGetErrorString(status) {
  return "an error of the fake CUDA runtime";
}
status cudaGetLastError() {
  return status::success;
}
status cudaStreamCreateWithFlags(CUstream_st** stream, unsigned int) {
  *stream = new CUstream_st;
  return status::success;
}
status cudaStreamDestroy(CUstream_st* stream) {
  delete stream;
  return status::success;
}
status cudaEventCreateWithFlags(CUevent_st** event, unsigned int) {
  *event = new CUevent_st;
  return status::success;
}
status cudaEventDestroy(CUevent_st* event) {
  delete event;
  return status::success;
}
status cudaEventRecord(CUevent_st* event, CUstream_st* stream) {
  const auto which = ++event->recorded;
  stream->push([event, which] { event->reached = which; });
  return status::success;
}
status cudaEventQuery(CUevent_st* event) {
  return event->reached == event->recorded ? status::success : status::not_ready;
}
status cudaMalloc(void** memory, std::size_t bytes) {
  *memory = make_block(bytes);
  return status::success;
}
status cudaFree(void* memory) {
  free_block(memory);
  return status::success;
}
status cudaHostAlloc(void** memory, std::size_t bytes, unsigned int) {
  *memory = make_block(bytes);
  return status::success;
}
status cudaFreeHost(void* memory) {
  free_block(memory);
  return status::success;
}
status cudaMemsetAsync(void* memory, int value, std::size_t bytes, CUstream_st* stream) {
  stream->push([=] { std::memset(memory, value, bytes); });
  return status::success;
}
status cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, copy_kind, CUstream_st* stream) {
  if (memory_here.has(to) && memory_here.has(from)) {
    stream->push([=] { std::memcpy(to, from, bytes); });
    return status::success;
  }
  stream->wait();
  std::memcpy(to, from, bytes);
  return status::success;
}
// Used by the other fake libraries.
status cudaLaunchHostFunc(CUstream_st* stream, void (*function)(void*), void* data) {
  stream->push([=] { function(data); });
  return status::success;
}

} // extern "C"
