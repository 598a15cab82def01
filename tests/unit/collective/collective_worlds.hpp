// Worlds: runs one body as every rank of a generation, over any implementation of the collective seam.
//
// A body runs on a thread or in a forked process of its own, so it reports by return value: `passed`, or the
// source line that failed. The world is torn down when every body has returned.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/seams/collective.hpp"

namespace troupe::worlds {

inline constexpr int passed = 0;
inline constexpr int not_connected = 1000;
inline constexpr int deadline_passed = 1001;

using body = std::function<int(communicator& member, std::uint32_t rank)>;

class world {
public:
  virtual ~world() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // Prepares a generation, runs `body` as every rank, returns what each reported.
  [[nodiscard]] virtual std::vector<int> run(const collective_shape& shape, const body& work) = 0;
  // Whether a sum that an abort strikes is complete for all ranks or for none; otherwise it may be for some.
  [[nodiscard]] virtual bool splits_nobody() const { return true; }
  // Whether every rank's `arrivals` shows all ranks; otherwise those that it has heard of, at least one.
  [[nodiscard]] virtual bool hears_all() const { return true; }
};

using connector = std::function<expected<std::unique_ptr<communicator>>(std::uint32_t rank)>;

// Each rank connects, waits for the others, and runs `work`.
[[nodiscard]] std::vector<int> run_threads(std::uint32_t count, const connector& connect, const body& work);
[[nodiscard]] std::vector<int> run_connected(std::uint32_t count, const connector& connect,
                                             const body& work); // forked processes

[[nodiscard]] std::unique_ptr<world> loopback_threads();
// Every rank maps the segment itself, as processes do. `cores` decides how ranks wait. With `lanes` parts of
// sums run on a thread of their own.
[[nodiscard]] std::unique_ptr<world> shm_threads(std::uint32_t cores, bool lanes = false);
// All ranks share one mapping, so that a race detector sees that they touch the same memory.
[[nodiscard]] std::unique_ptr<world> shm_one_mapping(std::uint32_t cores, bool lanes = false);
[[nodiscard]] std::unique_ptr<world> shm_processes(std::uint32_t cores, bool lanes = false);

// Yields until `condition` holds; false after a generous deadline.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);
// Runs one all-reduce that completes on this thread.
[[nodiscard]] expected<reduction> reduce(communicator& member);

} // namespace troupe::worlds
