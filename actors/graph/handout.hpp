// Handout: what a director gives every process that joins, as text inside the rendezvous answer.
#pragma once

#include <string>

#include "runtime/base/time.hpp"
#include "runtime/policy/job_settings.hpp"

namespace troupe {

struct job_handout {
  job_settings settings;     // with the number of steps resolved
  std::string train_locator; // where the decoded datasets lie on this host
  std::string test_locator;
  std::int64_t started_ns{0}; // of the job, on the monotonic clock of the director's host
  std::string machine{};      // the director's, as in join_offer
  std::string train_digest{}; // of the datasets, which a worker of another host reads for itself
  std::string test_digest{};
};

[[nodiscard]] std::string encode(const job_handout& what);
[[nodiscard]] expected<job_handout> decode_handout(const std::string& text); // errc::corrupt

} // namespace troupe
