// Conversation: actors of several processes ask, tell and watch one another while processes are killed.
//
// In:       a seed: it draws who says what to whom, who is killed, stopped, declared lost, or ends.
// Out:      findings, one line each; empty: the post office kept its word.
// Checked:  every request completes exactly once, and at once when the process asked is gone (PO-2); what
//           was told arrives or comes back while the path holds (PO-3); nothing of a lost peer or of an ended
//           generation arrives (PO-4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/time.hpp"

namespace troupe::sim {

struct conversation_result {
  std::vector<std::string> findings;
  std::vector<std::string> struck;
  std::string trace_digest;
  std::uint64_t events{0};
  std::uint64_t messages{0};
  duration virtual_time{0};
  std::vector<std::string> log;
};

[[nodiscard]] conversation_result converse(std::uint64_t seed);

} // namespace troupe::sim
