// Host GPU: one device of this machine with NCCL, for a worker; or NCCL alone, for a director.
//
// Owns:     what the loaded libraries are called through, and the worker's device.
// Runs on:  `open` before the loop runs: it waits for the device's thread; a driver takes seconds to begin.
// Fails:    errc::bad_argument: what this machine lacks, in one line with the remedy; errc::device_failed.
//           An abort that never returns ends the process (`end_process`).
// Why:      docs/design/0037-collectives-on-gpus.md, docs/design/0054-sums-on-gpus-in-jobs.md
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/policy/timeouts.hpp"
#include "runtime/seams/clock.hpp"
#include "runtime/seams/executor.hpp"
#include "transports/nccl/gpu_device.hpp"
#include "transports/nccl/loaded_gpu.hpp"
#include "transports/nccl/nccl_collective.hpp"

namespace troupe {

// What of GPUs a process uses.
struct gpu_use {
  std::uint32_t index{0};
  bool prepares_only{false};                               // a director: no device
  std::function<void(const std::string& why)> end_process; // a worker's last resort; any thread
};

struct gpu_threads {
  executor& owner; // the one thread that calls the device
  executor& loop;
  clock_seam& clock;
};

class host_gpu {
public:
  // `network`: the device that NCCL's processes meet over, unless NCCL_SOCKET_IFNAME says otherwise.
  [[nodiscard]] static expected<std::unique_ptr<host_gpu>>
  open(const gpu_use& use, const gpu_threads& threads, const std::string& network);
  // Would `open` find devices `first` to `last` here? Opens none.
  [[nodiscard]] static expected<void> look(std::uint32_t first, std::uint32_t last);

  // An abort that does not return ends the process before the others count as hung (TO-5).
  void set_deadlines(const timeouts& limits);

  [[nodiscard]] nccl_collective& sums() { return sums_; }
  [[nodiscard]] device* compute() const { return device_.get(); } // null: a director's
  [[nodiscard]] std::string kind() const { return fake_ ? "nccl (FAKE)" : "nccl"; }
  // No communicator is left, or none will ever leave.
  [[nodiscard]] bool rests() const;

private:
  host_gpu(const gpu_libraries& libraries, const gpu_use& use, const gpu_threads& threads);

  loaded_gpu calls_;
  bool fake_;
  std::shared_ptr<gpu_device> device_;
  nccl_collective sums_;
};

} // namespace troupe
