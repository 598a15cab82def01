// Staging: where a decoded dataset lies, once a host, shared read-only by all processes of the job.
//
// Flow:     decoder -> draft -> seal -> [staged memory] <- open(locator) by every other process
// Owns:     a draft owns its memory until it is sealed; staged memory lives as long as anyone holds it.
// Fails:    `errc::bad_argument` for a locator that is not one of ours, `errc::not_found` when its owner is
//           gone, `errc::corrupt` for memory that is not sealed or too short, `errc::storage_full` when
//           there is no memory left.
// Invariants:
//   ST-1    once sealed, nobody can write, shrink or grow the memory: readers need no lock and no copy.
//   ST-2    opening neither decodes nor copies.
// Why:      docs/rooms/data.md
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "runtime/base/error.hpp"

namespace troupe {

class staged_memory {
public:
  virtual ~staged_memory() = default;
  [[nodiscard]] virtual std::span<const std::byte> bytes() const = 0; // at least 64-byte aligned
  // What other processes open; valid while the object that sealed it lives.
  [[nodiscard]] virtual std::string locator() const = 0;
  // The file descriptor behind it, for a child to inherit; -1 where there is none. Not to be closed.
  [[nodiscard]] virtual int descriptor() const { return -1; }
};

class staging_draft {
public:
  virtual ~staging_draft() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() = 0; // zeroed; gone after `seal`
  // Once. The draft is spent afterwards, also on failure.
  [[nodiscard]] virtual expected<std::shared_ptr<const staged_memory>> seal() = 0;
};

class staging {
public:
  virtual ~staging() = default;
  // `name` is for people: it shows in the system's listings.
  [[nodiscard]] virtual expected<std::unique_ptr<staging_draft>> begin(const std::string& name,
                                                                       std::size_t bytes) = 0;
  [[nodiscard]] virtual expected<std::shared_ptr<const staged_memory>> open(const std::string& locator) = 0;
};

// Staging inside one process: for simulation, and for programs of one process. Thread-safe. Locators are
// "memory:N"; what was sealed can be opened while its owner holds it.
class memory_staging final : public staging {
public:
  memory_staging();
  [[nodiscard]] expected<std::unique_ptr<staging_draft>> begin(const std::string& name,
                                                               std::size_t bytes) override;
  [[nodiscard]] expected<std::shared_ptr<const staged_memory>> open(const std::string& locator) override;

  struct registry {
    std::mutex mutex;
    std::map<std::string, std::weak_ptr<const staged_memory>> sealed;
    std::size_t next{1};
  };

private:
  std::shared_ptr<registry> registry_;
};

} // namespace troupe
