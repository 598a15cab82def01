// What worlds of real processes need: a line where all wait for each other, and children that report.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/invariant.hpp"
#include "tests/unit/collective/collective_worlds.hpp"

namespace troupe::worlds {

// One object in memory that forked processes share.
template <class T>
class shared_object {
public:
  shared_object() {
    void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    invariant(memory != MAP_FAILED, "test: memory can be mapped");
    object_ = ::new (memory) T{};
  }
  ~shared_object() { ::munmap(object_, sizeof(T)); }
  shared_object(const shared_object&) = delete;
  shared_object& operator=(const shared_object&) = delete;
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

private:
  T* object_;
};

// Where threads or forked processes wait until all of them have come.
class start_line {
public:
  explicit start_line(std::uint32_t count)
      : count_{count} {}
  [[nodiscard]] bool wait() {
    ready_->fetch_add(1);
    return eventually([this] { return ready_->load() == count_; });
  }

private:
  std::uint32_t count_;
  shared_object<std::atomic<std::uint32_t>> ready_;
};

// Runs `work` as every rank, each in a forked process. A child reports through a pipe: an exit code is too
// narrow for a line number. -1 for a child that did not report.
inline std::vector<int> run_processes(std::uint32_t count,
                                      const std::function<int(std::uint32_t rank)>& work) {
  struct child {
    pid_t pid;
    int report;
  };
  std::vector<child> children;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    int ends[2];
    invariant(::pipe(ends) == 0, "test: a pipe can be made");
    const auto pid = ::fork();
    if (pid == 0) {
      const int result = work(rank);
      const auto written = ::write(ends[1], &result, sizeof result);
      ::_exit(written == sizeof result ? 0 : 1);
    }
    ::close(ends[1]);
    children.push_back({pid, ends[0]});
  }
  std::vector<int> results;
  for (const auto& [pid, report] : children) {
    int result = -1; // stays when the child was killed
    if (::read(report, &result, sizeof result) != sizeof result) result = -1;
    ::close(report);
    ::waitpid(pid, nullptr, 0);
    results.push_back(result);
  }
  return results;
}

} // namespace troupe::worlds
