#include "cli/sim/ledger.hpp"

#include <algorithm>

namespace troupe::sim {
namespace {

constexpr auto notice_max = std::chrono::milliseconds{500}; // of a process's end, generously

} // namespace

std::uint64_t ledger::new_speaker(std::int64_t from, std::int64_t to) {
  const bool held =
      !declared_.contains({from, to}) && !declared_.contains({to, from}) && !ended_.contains(to);
  speakers_.push_back({.from = from, .to = to, .path_held = held});
  return speakers_.size() - 1;
}

std::uint64_t ledger::asked(std::uint64_t by) {
  questions_.push_back({.by = by});
  return questions_.size() - 1;
}

void ledger::completed(std::uint64_t number, const std::optional<error>& how, time_point now) {
  auto& one = questions_.at(number);
  ++one.completed;
  const auto ended = ended_.find(speakers_.at(one.by).to);
  if (how && how->code == errc::timed_out && ended != ended_.end() && now - ended->second > notice_max)
    findings_.push_back("request " + std::to_string(number) + " to a process that had ended waited for " +
                        "its time-out");
}

void ledger::speaker_ended(std::uint64_t number) {
  speakers_.at(number).path_held = false;
  for (auto& one : questions_) {
    if (one.by == number) one.needed = false;
  }
}

void ledger::process_ended(std::int64_t pid, time_point now) {
  ended_.emplace(pid, now);
  for (std::uint64_t i = 0; i < speakers_.size(); ++i) {
    if (speakers_[i].from == pid) speaker_ended(i);
    if (speakers_[i].to == pid) speakers_[i].path_held = false;
  }
}

void ledger::declared_lost(std::int64_t by, std::int64_t whom, time_point now) {
  declared_.emplace(std::pair{by, whom}, now);
  path_broken(by, whom);
}

void ledger::path_broken(std::int64_t a, std::int64_t b) {
  for (auto& one : speakers_) {
    if ((one.from == a && one.to == b) || (one.from == b && one.to == a)) one.path_held = false;
  }
}

void ledger::generation_set(std::int64_t by, generation_id now_is, time_point now) {
  generations_[by] = {now_is, now};
}

// What was sent after the receiver's decision cannot rightly arrive; what was under way then may.
void ledger::arrived(std::uint64_t by, std::uint64_t number, generation_id sent_in, time_point sent) {
  auto& who = speakers_.at(by);
  ++who.arrived;
  if (number <= who.newest)
    findings_.push_back("message " + std::to_string(number) + " of process " + std::to_string(who.from) +
                        " arrived after number " + std::to_string(who.newest));
  who.newest = std::max(who.newest, number);
  const auto lost = declared_.find({who.to, who.from});
  if (lost != declared_.end() && sent > lost->second)
    findings_.push_back("a message of process " + std::to_string(who.from) +
                        " arrived, which had been declared lost before");
  const auto generation = generations_.find(who.to);
  if (generation == generations_.end() || sent <= generation->second.second) return;
  if (sent_in.value() != 0 && sent_in < generation->second.first)
    findings_.push_back("a message of generation " + to_string(sent_in) + " arrived in generation " +
                        to_string(generation->second.first));
}

std::vector<std::string> ledger::check() const {
  auto findings = findings_;
  for (std::uint64_t i = 0; i < questions_.size(); ++i) {
    const auto& one = questions_[i];
    if (one.completed > 1 || (one.needed && one.completed != 1))
      findings.push_back("request " + std::to_string(i) + " completed " + std::to_string(one.completed) +
                         " times");
  }
  for (const auto& one : speakers_) {
    if (!one.path_held || one.told == one.arrived + one.returned) continue;
    findings.push_back("of " + std::to_string(one.told) + " messages from process " +
                       std::to_string(one.from) + " to " + std::to_string(one.to) + ", " +
                       std::to_string(one.arrived) + " arrived and " + std::to_string(one.returned) +
                       " came back");
  }
  return findings;
}

} // namespace troupe::sim
