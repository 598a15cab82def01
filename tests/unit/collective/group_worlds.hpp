// Group worlds: one part, played as every rank of a generation, over any implementation of rank groups.
//
// A part has two halves, because some implementations finish no call before `start` returns: `issue` makes
// all calls, `check` looks at what became of them. Between them a blocking world has nothing to do; the
// others run their executors until nothing happens any more.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "tests/unit/collective/collective_worlds.hpp"

namespace troupe::group_worlds {

using bytes = std::vector<std::byte>;
inline constexpr std::byte untouched{0xee};

// A call, its memory, and what became of it.
struct record {
  const rank_group* group{nullptr};
  group_operation what;
  bytes in;
  bytes out;
  int dones{0};
  std::size_t place{0}; // among all that were done
  std::optional<expected<void>> result;
  std::function<void()> then{}; // where nothing blocks: run once it is done
  [[nodiscard]] bool succeeded() const { return result && *result; }
  [[nodiscard]] bool failed_with(errc code) const {
    return result && !*result && result->failure().code == code;
  }
};

// One rank: makes calls and keeps the records.
class player {
public:
  player(communicator& member, std::uint32_t rank)
      : member_{member}
      , rank_{rank} {}
  player(const player&) = delete;
  player& operator=(const player&) = delete;

  [[nodiscard]] communicator& member() { return member_; }
  [[nodiscard]] rank_group& group() { return *member_.group(); }
  [[nodiscard]] std::uint32_t rank() const { return rank_; }

  record& call(rank_group& group, group_operation what, bytes in, std::size_t out_bytes);
  // `in` and `out` are the same memory.
  record& call_in_place(rank_group& group, group_operation what, bytes memory);
  record& barrier(rank_group& group) { return call(group, {.call = group_call::barrier}, {}, 0); }
  // Splits, and keeps the part; null where it failed or does not contain this rank.
  rank_group* split(rank_group& group, const std::vector<std::uint32_t>& ranks);

  [[nodiscard]] const std::deque<record>& records() const { return records_; }
  [[nodiscard]] const std::vector<std::optional<error>>& splits() const { return splits_; } // what they gave
  // Every call was done once, in order within its group (GR-1).
  [[nodiscard]] bool all_done_in_order() const;

private:
  record& add(rank_group& group);
  void start(rank_group& group, record& made);

  communicator& member_;
  std::uint32_t rank_;
  std::deque<record> records_; // addresses stay
  std::vector<std::optional<error>> splits_;
  std::vector<std::unique_ptr<rank_group>> kept_;
  std::size_t done_{0};
};

struct part {
  std::function<void(player&)> issue;
  std::function<int(player&)> check; // worlds::passed, or the source line that failed
};

class group_world {
public:
  virtual ~group_world() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // Whether a call returns once it is done; otherwise nothing is done while a part issues.
  [[nodiscard]] virtual bool blocks() const { return false; }
  [[nodiscard]] virtual std::vector<int> play(const collective_shape& shape, const part& played) = 0;
};

// Every rank on a thread or in a process of its own, whose calls block.
[[nodiscard]] std::unique_ptr<group_world> blocking(std::unique_ptr<worlds::world> inner);
// One thread drives all ranks.
[[nodiscard]] std::unique_ptr<group_world> loopback_executor();
[[nodiscard]] std::unique_ptr<group_world> simulated(std::uint64_t seed);

} // namespace troupe::group_worlds
