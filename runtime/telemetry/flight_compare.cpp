#include "runtime/telemetry/flight_compare.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/units.hpp"

namespace troupe {
namespace {

constexpr std::size_t lanes_max = 65536; // compared; calls of further ones are passed over

using records_by_number = std::map<std::uint64_t, const flight_record*>;

// The calls that are compared with each other: a group's collectives, or what one rank sends to another.
struct lane {
  std::uint32_t group{0};
  bool pair{false};
  std::uint32_t from{0}, to{0};
  auto operator<=>(const lane&) const = default;
};

struct seat {
  const flight_dump* dump{nullptr};
  records_by_number calls;

  [[nodiscard]] std::uint32_t rank() const { return dump->about.rank.value(); }
  [[nodiscard]] std::uint64_t last() const { return calls.empty() ? 0 : calls.rbegin()->first; }
  [[nodiscard]] const flight_record* at(std::uint64_t number) const {
    const auto found = calls.find(number);
    return found == calls.end() ? nullptr : found->second;
  }
  // It is known that this rank has not made the call (FX-1).
  [[nodiscard]] bool lacks(std::uint64_t number) const {
    if (!dump->damage.empty() || number <= last()) return false;
    return !calls.empty() || dump->about.before == 0;
  }
};

duration age(const flight_dump& dump, std::int64_t since_ns) {
  return std::max(duration{0}, duration{to_ns(dump.about.now) - since_ns});
}

duration wait_in(const seat& who, const flight_record& call) {
  if (call.finished_ns == 0) return age(*who.dump, call.created_ns);
  return std::max(duration{0}, duration{call.finished_ns - call.created_ns});
}

std::string short_time(duration d) {
  constexpr auto ms = duration{std::chrono::milliseconds{1}};
  return format_duration(d < ms ? d : d / ms * ms);
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  constexpr std::size_t shown_max = 8;
  for (std::size_t i = 0; i < std::min(ranks.size(), shown_max); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > shown_max) text += " and " + std::to_string(ranks.size() - shown_max) + " more";
  return text;
}

std::string have(const std::vector<std::uint32_t>& ranks) {
  return ranks.size() == 1 ? " has" : " have";
}

// "sum #41 of step 41 (of 407080 float32)".
std::string call_text(const flight_record& call) {
  const bool part = call.group == flight_parts_group;
  auto text = std::string{part ? "part" : to_string(call.call)} + " #" + std::to_string(call.sequence) +
              " of step " + std::to_string(call.step);
  if (call.group > 1 && !part) text += " in group " + std::to_string(call.group);
  return text;
}

std::string end_text(const seat& who) {
  if (!who.dump->about.ended() || who.dump->about.cause.empty()) return {};
  const bool failed = who.dump->about.by == flight_writer::failed;
  return "; rank " + std::to_string(who.rank()) + (failed ? " has failed: " : " has ended: ") +
         who.dump->about.cause;
}

// What is known of the last call of a rank before the one that it did not enter.
std::string last_text(const seat& who) {
  if (who.calls.empty()) return "; it had entered none";
  const auto& call = *who.calls.rbegin()->second;
  auto text = "; its last was " + call_text(call) + ", " + std::string{to_string(call.outcome)};
  if (call.finished_ns != 0) text += " " + short_time(age(*who.dump, call.finished_ns)) + " before its dump";
  return text;
}

class comparison {
public:
  explicit comparison(std::span<const flight_dump> dumps)
      : dumps_{dumps} {
    for (const auto& dump : dumps_) {
      if (dump.about.ended()) ended_.push_back(dump.about.rank.value());
      for (const auto& group : dump.about.groups)
        members_[group.group].insert(group.ranks.begin(), group.ranks.end());
      for (const auto& record : dump.records)
        take(dump, record);
    }
    for (auto& [which, seats] : lanes_)
      seat_members(which, seats);
  }

  [[nodiscard]] flight_finding run() {
    for (const auto& [which, seats] : lanes_)
      which.pair ? look_at_pair(which, seats) : look_at_collectives(seats);
    if (best_.what == flight_verdict::agree) look_for_unheard();
    if (best_.what == flight_verdict::agree) look_for_ended();
    if (best_.what == flight_verdict::agree) best_.text = agreement();
    return std::move(best_);
  }

private:
  using seats_of_lane = std::map<std::uint32_t, seat>; // by rank

  static lane lane_of(const flight_dump& dump, const flight_record& record) {
    const auto self = dump.about.rank.value();
    if (record.call == collective_call::send) return {record.group, true, self, record.peer};
    if (record.call == collective_call::receive) return {record.group, true, record.peer, self};
    return {record.group, false, 0, 0};
  }

  void take(const flight_dump& dump, const flight_record& record) {
    if (record.sequence == 0) return; // refused: it counts as not called (FL-2)
    const auto which = lane_of(dump, record);
    if (lanes_.size() >= lanes_max && !lanes_.contains(which)) return;
    auto& place = lanes_[which].try_emplace(dump.about.rank.value(), seat{&dump, {}}).first->second;
    place.calls.try_emplace(record.sequence, &record);
  }

  // Who should have made these calls and has not made one.
  void seat_members(const lane& which, seats_of_lane& seats) const {
    const auto its = members_.find(which.group);
    for (const auto& dump : dumps_) {
      const auto rank = dump.about.rank.value();
      const bool expected_here = which.pair         ? rank == which.from || rank == which.to
                                 : which.group == 0 ? true
                                                    : its != members_.end() && its->second.contains(rank);
      if (expected_here) seats.try_emplace(rank, seat{&dump, {}});
    }
  }

  void look_at_collectives(const seats_of_lane& seats) {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last = 0;
    for (const auto& [rank, one] : seats) {
      if (one.calls.empty()) continue;
      first = std::min(first, one.calls.begin()->first);
      last = std::max(last, one.last());
    }
    // Numbers that nobody has are passed over: a dump may hold any.
    for (auto number = first; number <= last; number = next_number(seats, number)) {
      if (look_at_call(seats, number) || number == last) return;
    }
  }

  static std::uint64_t next_number(const seats_of_lane& seats, std::uint64_t after) {
    auto next = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [rank, one] : seats) {
      const auto found = one.calls.upper_bound(after);
      if (found != one.calls.end()) next = std::min(next, found->first);
    }
    return next;
  }

  // True once the lane's first finding is found.
  bool look_at_call(const seats_of_lane& seats, std::uint64_t number) {
    std::vector<const seat*> present, absent;
    for (const auto& [rank, one] : seats) {
      if (one.at(number) != nullptr)
        present.push_back(&one);
      else if (one.lacks(number))
        absent.push_back(&one);
    }
    if (present.empty()) return false;
    return find_different(present, number) || find_left_out(present, number) ||
           find_missing(present, absent, number) || (absent.empty() && find_behind(present, number));
  }

  bool find_different(const std::vector<const seat*>& present, std::uint64_t number) {
    const auto same = [&](const seat* a, const seat* b) {
      return difference(a->at(number)->what(), b->at(number)->what()) == call_difference::none;
    };
    const seat* common = nullptr;
    std::size_t most = 0;
    for (const auto* one : present) {
      const auto like = static_cast<std::size_t>(
          std::ranges::count_if(present, [&](const seat* other) { return same(one, other); }));
      if (like > most) common = one, most = like;
      if (like == present.size()) return false;
    }
    std::vector<std::uint32_t> others;
    const seat* odd = nullptr;
    for (const auto* one : present) {
      if (same(one, common)) continue;
      if (odd == nullptr) odd = one;
      others.push_back(one->rank());
    }
    const auto& theirs = *common->at(number);
    const auto& ours = *odd->at(number);
    const auto named = ranks_text(others);
    std::string rest = "the others " + to_text(theirs.what());
    if (2 * most <= present.size()) { // FX-3
      others.insert(others.begin(), common->rank());
      rest = "rank " + std::to_string(common->rank()) + " " + to_text(theirs.what());
    }
    return note(flight_verdict::different, std::move(others), theirs, {},
                "in " + call_text(theirs) + " " + named + " called " + to_text(ours.what()) + ", " + rest +
                    " (" + std::string{to_string(difference(ours.what(), theirs.what()))} + ")");
  }

  bool find_left_out(const std::vector<const seat*>& present, std::uint64_t number) {
    std::vector<std::uint32_t> who;
    for (const auto* one : present) {
      if (one->at(number)->outcome == call_outcome::left_out) who.push_back(one->rank());
    }
    if (who.empty()) return false;
    const auto& call = *present.front()->at(number);
    const auto text = ranks_text(who) + (who.size() == 1 ? " was" : " were") + " not in " + call_text(call) +
                      ": what came back was the receipt of another one";
    return note(flight_verdict::left_out, std::move(who), call, {}, text);
  }

  bool find_missing(const std::vector<const seat*>& present, std::vector<const seat*>& absent,
                    std::uint64_t number) {
    duration waited{0};
    const seat* waiting = nullptr;
    for (const auto* one : present) {
      if (one->at(number)->finished()) continue;
      const auto wait = wait_in(*one, *one->at(number));
      if (waiting == nullptr || wait > waited) waiting = one, waited = wait;
    }
    std::erase_if(absent, [this](const seat* one) { return excused(one->rank()); });
    if (absent.empty() || waiting == nullptr) return false;
    std::vector<std::uint32_t> who;
    for (const auto* one : absent)
      who.push_back(one->rank());
    const auto& call = *waiting->at(number);
    const auto& first = *absent.front();
    const auto text = ranks_text(who) + " did not enter " + call_text(call) + " (" + to_text(call.what()) +
                      "); rank " + std::to_string(waiting->rank()) + " waited in it for " +
                      short_time(waited) + last_text(first) + end_text(first);
    return note(flight_verdict::missing, std::move(who), call, waited, text);
  }

  // It was on its way when another rank's end ended the generation (FX-2).
  [[nodiscard]] bool excused(std::uint32_t rank) const {
    return !ended_.empty() && std::ranges::find(ended_, rank) == ended_.end();
  }

  // All have entered it and nobody has left it: whoever has reached fewer of its meetings is waited for.
  bool find_behind(const std::vector<const seat*>& present, std::uint64_t number) {
    duration waited{0};
    for (const auto* one : present) {
      const auto& call = *one->at(number);
      if (call.finished() || call.group != 0) return false;
      waited = std::max(waited, wait_in(*one, call));
    }
    const auto arrivals = newest_arrivals();
    if (arrivals.empty()) return false;
    const auto [least, most] = std::ranges::minmax(arrivals);
    if (least == most) return false;
    std::vector<std::uint32_t> who;
    for (std::uint32_t rank = 0; rank < arrivals.size(); ++rank) {
      if (arrivals[rank] == least && !excused(rank)) who.push_back(rank);
    }
    if (who.empty()) return false;
    const auto& call = *present.front()->at(number);
    auto text = ranks_text(who) + " called " + call_text(call) + " and" + have(who) +
                " not arrived in it; the others waited for " + short_time(waited);
    for (const auto* one : present) {
      if (one->rank() == who.front()) text += end_text(*one);
    }
    return note(flight_verdict::behind, std::move(who), call, waited, text);
  }

  [[nodiscard]] std::vector<std::uint64_t> newest_arrivals() const {
    std::vector<std::uint64_t> newest;
    for (const auto& dump : dumps_) {
      if (dump.about.arrivals.size() != dump.about.world) continue;
      newest.resize(dump.about.world);
      for (std::size_t i = 0; i < newest.size(); ++i)
        newest[i] = std::max(newest[i], dump.about.arrivals[i]);
    }
    return newest;
  }

  void look_at_pair(const lane& which, const seats_of_lane& seats) {
    const auto from = seats.find(which.from);
    const auto to = seats.find(which.to);
    if (from == seats.end() || to == seats.end() || from == to) return;
    for (const auto& [ours, theirs] : {std::pair{from, to}, std::pair{to, from}}) {
      for (const auto& [number, call] : ours->second.calls) {
        if (look_at_half(ours->second, theirs->second, *call)) return;
      }
    }
  }

  bool look_at_half(const seat& ours, const seat& theirs, const flight_record& call) {
    if (const auto* other = theirs.at(call.sequence)) {
      const auto text = explain_difference(call.what(), other->what());
      if (text.empty()) return false;
      return note(flight_verdict::different, {ours.rank(), theirs.rank()}, call, {},
                  "ranks " + std::to_string(ours.rank()) + " and " + std::to_string(theirs.rank()) + " in " +
                      call_text(call) + ": " + text);
    }
    if (call.finished() || !theirs.lacks(call.sequence)) return false;
    const auto waited = wait_in(ours, call);
    const auto missing = call.call == collective_call::send ? "receive" : "send";
    return note(flight_verdict::missing, {theirs.rank()}, call, waited,
                "rank " + std::to_string(theirs.rank()) + " did not call " + missing + " #" +
                    std::to_string(call.sequence) + "; rank " + std::to_string(ours.rank()) + " waited in " +
                    call_text(call) + " for " + short_time(waited) + last_text(theirs) + end_text(theirs));
  }

  // Of a rank without a dump nothing is known; that others wait is.
  void look_for_unheard() {
    std::vector<std::uint32_t> silent;
    for (std::uint32_t rank = 0; rank < dumps_.front().about.world; ++rank) {
      const auto its = [rank](const flight_dump& one) { return one.about.rank.value() == rank; };
      if (std::ranges::none_of(dumps_, its)) silent.push_back(rank);
    }
    for (const auto& dump : dumps_) {
      if (silent.empty() || dump.records.empty() || dump.records.back().finished()) continue;
      const auto& call = dump.records.back();
      const auto waited = wait_in({&dump, {}}, call);
      const auto text = ranks_text(silent) + " left no dump; rank " + to_string(dump.about.rank) +
                        " waited in " + call_text(call) + " for " + short_time(waited);
      (void)note(flight_verdict::unheard, std::move(silent), call, waited, text);
      return;
    }
  }

  void look_for_ended() {
    if (ended_.empty()) return;
    best_.what = flight_verdict::ended;
    best_.ranks = ended_;
    for (const auto& dump : dumps_) {
      if (dump.about.rank.value() != ended_.front()) continue;
      best_.step = dump.about.step_started.value();
      best_.text = ranks_text(ended_) + have(ended_) + " ended in step " +
                   to_string(dump.about.step_started) + ": " + dump.about.cause +
                   "; until then all calls agree";
    }
  }

  [[nodiscard]] std::string agreement() const {
    const auto world = dumps_.front().about.world;
    if (dumps_.size() == world)
      return world == 1 ? "the only rank has nobody to differ from"
                        : "all " + std::to_string(world) + " ranks agree";
    return "the " + std::to_string(dumps_.size()) + " ranks that left a dump agree, of " +
           std::to_string(world);
  }

  // Keeps what came first: by step, then by the number of the call.
  bool note(flight_verdict what, std::vector<std::uint32_t> ranks, const flight_record& call, duration waited,
            std::string text) {
    const auto earlier = std::pair{call.step, call.sequence} < std::pair{best_.step, best_.sequence};
    if (best_.what == flight_verdict::agree || earlier)
      best_ = {what, std::move(ranks), call.group, call.sequence, call.step, waited, std::move(text)};
    return true;
  }

  std::span<const flight_dump> dumps_;
  std::map<std::uint32_t, std::set<std::uint32_t>> members_; // of groups, as any of them told
  std::map<lane, seats_of_lane> lanes_;
  std::vector<std::uint32_t> ended_;
  flight_finding best_;
};

} // namespace

std::string_view to_string(flight_verdict what) {
  constexpr std::string_view names[]{"agree",  "missing", "different", "left_out",
                                     "behind", "ended",   "unheard"};
  return names[static_cast<std::size_t>(what)];
}

flight_finding compare_flights(std::span<const flight_dump> dumps) {
  return comparison{dumps}.run();
}

} // namespace troupe
