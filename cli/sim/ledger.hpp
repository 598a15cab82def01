// Ledger of a conversation: what was asked and told, and what became of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/time.hpp"

namespace troupe::sim {

class ledger {
public:
  // One speaker tells one process; both ends are known by their pids.
  struct speaker {
    std::int64_t from{0};
    std::int64_t to{0};
    std::uint64_t told{0};
    std::uint64_t arrived{0};
    std::uint64_t newest{0}; // number of it
    std::uint64_t returned{0};
    bool path_held{true}; // nothing happened for which a message may be lost
  };

  [[nodiscard]] std::uint64_t new_speaker(std::int64_t from, std::int64_t to);
  [[nodiscard]] speaker& of(std::uint64_t number) { return speakers_.at(number); }
  [[nodiscard]] std::uint64_t asked(std::uint64_t by);
  void completed(std::uint64_t question, const std::optional<error>& how, time_point now);
  void speaker_ended(std::uint64_t number); // what it asked need not be answered any more
  void process_ended(std::int64_t pid, time_point now);
  void declared_lost(std::int64_t by, std::int64_t whom, time_point now);
  void generation_set(std::int64_t by, generation_id now_is, time_point now);
  // A message of `by`, sent at `sent` in `sent_in`.
  void arrived(std::uint64_t by, std::uint64_t number, generation_id sent_in, time_point sent);

  [[nodiscard]] std::vector<std::string> check() const;

private:
  struct question {
    std::uint64_t by{0};
    int completed{0};
    bool needed{true};
  };
  void path_broken(std::int64_t a, std::int64_t b);

  std::vector<speaker> speakers_;
  std::vector<question> questions_;
  std::map<std::int64_t, time_point> ended_;
  std::map<std::pair<std::int64_t, std::int64_t>, time_point> declared_; // by, whom
  std::map<std::int64_t, std::pair<generation_id, time_point>> generations_;
  std::vector<std::string> findings_;
};

} // namespace troupe::sim
