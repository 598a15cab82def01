#include "runtime/policy/failure_detector.hpp"

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include "runtime/base/probe.hpp"
#include "runtime/base/units.hpp"

namespace troupe {
namespace {

constexpr std::size_t step_times_kept = 64;
constexpr std::size_t step_times_needed = 3; // before that, first_step_deadline applies

bool judged(activity doing) {
  return doing >= activity::waiting_for_data;
}

// How far a rank has come: entering a step's collective is further than computing the step, and of two in it
// the one is further that has reached more of its meetings.
std::tuple<step_id, bool, std::uint64_t> position(const progress& at) {
  const bool inside = at.doing == activity::in_collective;
  return {at.step_started, inside, inside ? at.arrivals : 0};
}

// " (sum #41)".
std::string call_text(const progress& at) {
  if (at.call_number == 0) return {};
  return " (" + std::string{to_string(at.call)} + " #" + std::to_string(at.call_number) + ")";
}

std::string factor_text(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", factor);
  return text;
}

std::string rank_text(rank_id rank) {
  return "rank " + to_string(rank);
}

duration upper_median(std::vector<duration>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

} // namespace

std::string_view to_string(activity doing) {
  switch (doing) {
  case activity::holding:
    return "holding";
  case activity::loading:
    return "loading";
  case activity::evaluating:
    return "evaluating";
  case activity::waiting_for_data:
    return "waiting for data";
  case activity::computing:
    return "computing";
  case activity::in_collective:
    return "in a collective";
  }
  return "unknown";
}

std::string_view to_string(verdict::kind what) {
  switch (what) {
  case verdict::kind::lease_expired:
    return "lease_expired";
  case verdict::kind::hung:
    return "hung";
  case verdict::kind::collective_hung:
    return "collective_hung";
  case verdict::kind::straggler:
    return "straggler";
  }
  return "unknown";
}

liveness::liveness(duration lease, duration path_grace, time_point now)
    : lease_{lease}
    , path_grace_{path_grace}
    , last_beat_{now}
    , deadline_{now + lease} {}

void liveness::beat(time_point now) {
  last_beat_ = now;
  deadline_ = now + lease_;
  suspected_ = false;
  heard_out_ = false;
}

void liveness::path_error(time_point now) {
  if (suspected_) return; // the error may be told twice
  suspected_ = true;
  deadline_ = std::min(deadline_, now + path_grace_);
}

bool liveness::observer_stalled(time_point now, duration missed) {
  const auto before = deadline_;
  deadline_ = std::min(deadline_ + missed, now + (suspected_ ? path_grace_ : lease_));
  if (!heard_out_ && deadline_ < now + path_grace_) {
    heard_out_ = true;
    deadline_ = now + path_grace_;
  }
  return deadline_ > before;
}

failure_detector::failure_detector(const timeouts& limits, const detector_settings& settings)
    : limits_{limits}
    , settings_{settings} {
  step_times_.reserve(step_times_kept);
  scratch_.reserve(step_times_kept);
}

failure_detector::peer* failure_detector::find(incarnation_id who) {
  const auto at = std::ranges::find(peers_, who, &peer::who);
  return at == peers_.end() ? nullptr : &*at;
}

void failure_detector::watch(incarnation_id who, rank_id rank, time_point now) {
  if (auto* known = find(who)) {
    known->rank = rank;
    return;
  }
  if (!last_tick_) last_tick_ = now;
  peers_.push_back(
      {.who = who, .rank = rank, .lease = {limits_.lease, limits_.path_grace, now}, .advanced_at = now});
}

void failure_detector::forget(incarnation_id who) {
  std::erase_if(peers_, [who](const peer& p) { return p.who == who; });
}

void failure_detector::generation_started(time_point now) {
  between_ = false;
  for (auto& p : peers_) {
    p.advanced_at = now;
    p.last = {};
    p.stepped = false;
    p.hang_told = false;
    p.slow_streak = 0;
    p.straggler_told = false;
    p.straggler_new = false;
  }
}

bool failure_detector::beat(incarnation_id who, const progress& reported, time_point now) {
  auto* p = find(who);
  if (p == nullptr || p->dead) {
    probe<"detector.beat_unknown">::hit();
    ++stale_beats_;
    return false;
  }
  p->lease.beat(now);
  learn(*p, reported, now);
  return true;
}

void failure_detector::path_error(incarnation_id who, time_point now) {
  if (auto* p = find(who); p != nullptr && !p->dead) p->lease.path_error(now);
}

void failure_detector::learn(peer& p, const progress& reported, time_point now) {
  const progress before = p.last;
  p.last = reported;
  const bool moved = reported.step_applied != before.step_applied;
  if (!judged(reported.doing) || !judged(before.doing) || moved) {
    if (moved && p.stepped && judged(before.doing) && reported.step_applied > before.step_applied) {
      const auto steps = reported.step_applied.value() - before.step_applied.value();
      const duration each = (now - p.advanced_at) / static_cast<duration::rep>(steps);
      if (step_times_.size() < step_times_kept)
        step_times_.push_back(each);
      else
        step_times_[step_times_next_] = each;
      step_times_next_ = (step_times_next_ + 1) % step_times_kept;
      scratch_ = step_times_;
      typical_step_ = upper_median(scratch_);
      longest_step_ = *std::ranges::max_element(step_times_);
    }
    p.advanced_at = now;
    p.hang_told = false;
  }
  if (!moved) return;
  stepped_at_ = now;
  p.stepped = p.stepped || reported.step_applied > before.step_applied;
  if (reported.step_busy > duration::zero()) judge_pace(p, now);
}

void failure_detector::judge_pace(peer& p, time_point now) {
  const duration others = median_busy_of_others(p);
  const duration own = p.last.step_busy;
  const bool slow = others > duration::zero() && to_s(own) >= settings_.straggler_factor * to_s(others) &&
                    own - others >= settings_.straggler_excess_min;
  if (!slow) {
    p.slow_streak = 0;
    p.straggler_told = false;
    p.straggler_new = false;
    return;
  }
  if (p.slow_streak++ == 0) p.slow_since = now;
  if (p.slow_streak < settings_.straggler_steps || p.straggler_told) return;
  p.straggler_told = true;
  p.straggler_new = true;
}

duration failure_detector::median_busy_of_others(const peer& p) {
  scratch_.clear();
  for (const auto& other : peers_) {
    if (&other != &p && !other.dead && other.last.step_busy > duration::zero())
      scratch_.push_back(other.last.step_busy);
  }
  return scratch_.empty() ? duration::zero() : upper_median(scratch_);
}

std::vector<verdict> failure_detector::tick(time_point now) {
  std::vector<verdict> out;
  check_stall(now);
  check_leases(now, out);
  if (!between_) check_hangs(now, out); // FD-9
  for (auto& p : peers_) {
    if (!p.straggler_new || p.dead) continue;
    probe<"detector.straggles">::hit();
    p.straggler_new = false;
    const duration others = median_busy_of_others(p);
    const double factor = to_s(p.last.step_busy) / to_s(others);
    out.push_back({.what = verdict::kind::straggler,
                   .who = p.who,
                   .rank = p.rank,
                   .step = p.last.step_started,
                   .since = p.slow_since,
                   .text = rank_text(p.rank) + ": " + format_duration(p.last.step_busy) +
                           " of its own a step, " + factor_text(factor) + " x its peers' " +
                           format_duration(others) + ", " + std::to_string(p.slow_streak) +
                           " samples running",
                   .factor = factor});
  }
  return out;
}

void failure_detector::check_stall(time_point now) {
  const auto before = std::exchange(last_tick_, now);
  if (!before || now - *before <= limits_.stall_gap) return;
  probe<"detector.observer_stalled">::hit();
  ++stalls_;
  const auto missed = now - *before - limits_.heartbeat_interval;
  missed_ += missed;
  for (auto& p : peers_) {
    if (p.dead) continue;
    if (probe<"detector.lease_extended">::when(p.lease.observer_stalled(now, missed))) ++leases_extended_;
    p.advanced_at = std::min(now, p.advanced_at + (now - *before)); // nobody looked: the time does not count
  }
}

void failure_detector::check_leases(time_point now, std::vector<verdict>& out) {
  for (auto& p : peers_) {
    if (p.dead || !p.lease.expired(now)) continue;
    p.dead = true;
    const bool path = p.lease.suspected();
    probe<"detector.lease_expired">::when(!path);
    probe<"detector.path_grace_expired">::when(path);
    const std::string bound = path ? "path lost, grace " + format_duration(limits_.path_grace)
                                   : "lease " + format_duration(limits_.lease);
    out.push_back({.what = verdict::kind::lease_expired,
                   .who = p.who,
                   .rank = p.rank,
                   .step = p.last.step_started,
                   .since = p.lease.last_beat(),
                   .text = rank_text(p.rank) + ": no heartbeat for " +
                           format_duration(now - p.lease.last_beat()) + " (" + bound + ")",
                   .path_lost = path});
  }
}

bool failure_detector::stuck(const peer& p, time_point now) const {
  if (p.dead || !judged(p.last.doing) || p.lease.suspected()) return false;
  if (p.lease.last_beat() <= stepped_at_) return false; // FD-10
  const duration bound = p.stepped ? hang_bound() : std::max(hang_bound(), limits_.first_step_deadline);
  return now - p.advanced_at > bound;
}

// Blames the ranks that have come least far; the others wait for them in the collective (FD-6).
void failure_detector::check_hangs(time_point now, std::vector<verdict>& out) {
  const peer* behind = nullptr;
  std::size_t members = 0;
  std::size_t level = 0; // members as far back as `behind`
  for (const auto& p : peers_) {
    if (p.dead) continue;
    ++members;
    if (!judged(p.last.doing)) continue;
    if (behind == nullptr || position(p.last) < position(behind->last)) {
      behind = &p;
      level = 1;
    } else if (position(p.last) == position(behind->last)) {
      ++level;
    }
  }
  if (behind == nullptr) return;
  const bool collective = behind->last.doing == activity::in_collective;
  // Others do other work: before that step, waiting for them is no hang; after it, nobody waits for them.
  std::size_t past = 0;
  std::size_t before = 0;
  for (const auto& p : peers_) {
    if (p.dead || judged(p.last.doing)) continue;
    ++(p.last.step_applied < behind->last.step_started ? before : past);
  }
  if (probe<"detector.waits_for_other_work">::when(collective && before > 0)) return;
  const bool everybody = collective && members > 1 && level + past == members;
  const auto furthest_back = position(behind->last);
  for (auto& p : peers_) {
    if (position(p.last) != furthest_back || !stuck(p, now) || p.hang_told) continue;
    if (probe<"detector.everybody_hangs">::when(everybody)) {
      for (auto& told : peers_)
        told.hang_told = true;
      out.push_back(hang_verdict(p, verdict::kind::collective_hung, now));
      return;
    }
    probe<"detector.hangs">::hit();
    p.hang_told = true;
    out.push_back(hang_verdict(p, verdict::kind::hung, now));
  }
}

// Of those in a collective the one that has come furthest: what it waits in is what somebody else is missing
// from.
const failure_detector::peer* failure_detector::furthest_waiting() const {
  const peer* out = nullptr;
  for (const auto& p : peers_) {
    if (p.dead || p.last.doing != activity::in_collective) continue;
    if (out == nullptr || position(out->last) < position(p.last)) out = &p;
  }
  return out;
}

verdict failure_detector::hang_verdict(const peer& p, verdict::kind what, time_point now) const {
  const auto in_it_for = [now](const peer& one) {
    return one.last.doing_for + (now - one.lease.last_beat());
  };
  const auto* const waiting = furthest_waiting();
  const bool alone = what == verdict::kind::hung;
  const bool inside = p.last.doing == activity::in_collective;
  std::string text = alone ? rank_text(p.rank) : "every rank";
  text += ": ";
  if (alone && inside && peers_.size() > 1)
    text += "has not entered the collective that its peers wait in" + call_text(waiting->last) + ",";
  else
    text += std::string{to_string(p.last.doing)} + (inside ? call_text(p.last) : "");
  text += " for " + format_duration(in_it_for(p)) + " at step " + to_string(p.last.step_started);
  if (alone && !inside && waiting != nullptr)
    text += " while its peers wait in a collective" + call_text(waiting->last) + " for " +
            format_duration(in_it_for(*waiting));
  text += ", no step for " + format_duration(now - p.advanced_at) + " (bound " +
          format_duration(hang_bound()) + "), heartbeats arrive";
  return {.what = what,
          .who = p.who,
          .rank = p.rank,
          .step = p.last.step_started,
          .since = p.advanced_at,
          .text = std::move(text)};
}

bool failure_detector::beats(incarnation_id who, time_point now) const {
  const auto at = std::ranges::find(peers_, who, &peer::who);
  return at != peers_.end() && !at->dead && !at->lease.suspected() &&
         now - at->lease.last_beat() < limits_.path_grace;
}

bool failure_detector::suspected(incarnation_id who) const {
  const auto at = std::ranges::find(peers_, who, &peer::who);
  return at != peers_.end() && at->lease.suspected();
}

duration failure_detector::hang_bound() const {
  if (step_times_.size() < step_times_needed)
    return std::max(limits_.hang_floor, limits_.first_step_deadline);
  return limits_.hang_bound(typical_step_, longest_step_);
}

orphan_watch::orphan_watch(const timeouts& limits, time_point now)
    : stall_gap_{limits.stall_gap}
    , heartbeat_interval_{limits.heartbeat_interval}
    , lease_{limits.orphan_grace, limits.lease, now}
    , last_look_{now} {}

bool orphan_watch::orphaned(time_point now) {
  const auto gap = now - std::exchange(last_look_, now);
  if (gap > stall_gap_) {
    probe<"orphan_watch.stalled">::hit();
    lease_.observer_stalled(now, gap - heartbeat_interval_);
  }
  return lease_.expired(now);
}

} // namespace troupe
