#include "cli/chaos/chaos_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/units.hpp"

namespace troupe::chaos {
namespace {

using place = fault_target::place;
using choice = fault_target::choice;

constexpr std::string_view outside_kill = "outside-kill";
constexpr std::string_view outside_stop = "outside-stop";
constexpr std::array outside_kinds{outside_kill, outside_stop};
constexpr double slow_factor = 4;
constexpr std::uint64_t parts_before_end = 5; // CH-4: in the first four fifths

// What a kind is drawn with.
struct kind_row {
  fault_kind kind;
  place target;
  bool lasting;
  bool slows;
};
constexpr std::array<kind_row, 19> rows{{
    {fault_kind::kill, place::worker, false, false},
    {fault_kind::segv, place::worker, false, false},
    {fault_kind::exit, place::worker, false, false},
    {fault_kind::throw_error, place::worker, false, false},
    {fault_kind::stop, place::worker, true, false},
    {fault_kind::slow, place::worker, true, true},
    {fault_kind::hang_in_collective, place::worker, true, false},
    {fault_kind::skip_collective, place::worker, false, false},
    {fault_kind::cut, place::worker, true, false},
    {fault_kind::clog, place::worker, true, true},
    {fault_kind::path_error, place::worker, false, false},
    {fault_kind::disk_full, place::none, true, false},
    {fault_kind::disk_slow, place::none, true, true},
    {fault_kind::torn_write, place::checkpoint, false, false},
    {fault_kind::bit_flip, place::checkpoint, false, false},
    {fault_kind::nan, place::worker, false, false},
    {fault_kind::oom, place::worker, false, false},
    {fault_kind::clock_step, place::worker, true, false},
    {fault_kind::director_kill, place::none, false, false},
}};

const kind_row* row_named(std::string_view name) {
  const auto found = std::ranges::find(rows, name, [](const kind_row& row) { return to_string(row.kind); });
  return found == rows.end() ? nullptr : &*found;
}

// The numbers of one run, in the order in which they are asked for.
class dice {
public:
  dice(std::uint64_t seed, std::uint64_t run)
      : numbers_{seed, stream_of("chaos run") + run} {}
  [[nodiscard]] std::uint64_t below(std::uint64_t count) { return numbers_.bits(position_++) % count; }
  [[nodiscard]] duration within(duration least, duration most) { // whole milliseconds
    const auto span = static_cast<std::uint64_t>((most - least) / std::chrono::milliseconds{1});
    return std::chrono::floor<std::chrono::milliseconds>(least) + std::chrono::milliseconds{below(span + 1)};
  }
  [[nodiscard]] duration exponential(duration mean) {
    const double gap = -std::log1p(-static_cast<double>(numbers_.uniform(position_++)));
    return std::max<duration>(std::chrono::milliseconds{1}, // whole milliseconds
                              std::chrono::milliseconds{std::llround(gap * to_ms(mean))});
  }

private:
  counter_rng numbers_;
  std::uint64_t position_{0};
};

class drawing {
public:
  drawing(const plan_settings& settings, std::uint64_t run, std::uint32_t workers)
      : settings_{settings}
      , workers_{workers}
      , dice_{settings.seed, run} {}

  std::vector<strike> plan(duration length) && {
    const auto horizon = length + length / 2; // healing lengthens a run
    auto at = dice_.exponential(settings_.mtbf);
    const auto latest = length - length / parts_before_end;
    if (at > latest) at = dice_.within(latest / parts_before_end, latest); // CH-4
    for (; at < horizon && plan_.size() < strikes_max; at += dice_.exponential(settings_.mtbf))
      add(at);
    return std::move(plan_);
  }

private:
  void add(duration at) {
    const auto kind = draw_kind();
    if (kind.empty()) return;
    strike one{.kind = std::string{kind}, .at = at};
    const bool drawn = row_named(kind) != nullptr ? draw_inside(one) : draw_outside(one);
    if (!drawn) return;
    director_dies_ = director_dies_ || one.kills_director();
    plan_.push_back(std::move(one));
  }

  std::string_view draw_kind() {
    std::vector<std::string_view> open{settings_.kinds.begin(), settings_.kinds.end()};
    if (director_dies_) std::erase(open, to_string(fault_kind::director_kill)); // CH-3
    return open.empty() ? std::string_view{} : open[dice_.below(open.size())];
  }

  bool draw_inside(strike& one) {
    const auto& row = *row_named(one.kind);
    fault what{.kind = row.kind, .target = {.where = row.target}};
    what.when = {.what = fault_moment::kind::after, .time = one.at};
    if (row.target == place::checkpoint) what.target.which = choice::newest;
    if (row.target == place::worker) {
      one.rank = draw_rank(one.at);
      if (!one.rank) return false;
      what.target.which = choice::one;
      what.target.number = *one.rank;
      if (row.kind == fault_kind::throw_error && dice_.below(2) == 1) what.target.where = place::prefetcher;
    }
    if (row.lasting) what.lasting = dice_.within(lasting_min, lasting_max);
    if (row.slows) what.factor = slow_factor;
    one.inside = what;
    return true;
  }

  bool draw_outside(strike& one) {
    if (one.kind == outside_stop) one.lasting = dice_.within(lasting_min, lasting_max);
    const bool may_be_director = one.kind == outside_stop || !director_dies_;
    if (may_be_director && dice_.below(workers_ + 1) == workers_) return true;
    one.rank = draw_rank(one.at);
    return one.rank.has_value();
  }

  // A worker that may still be struck (CH-2).
  std::optional<std::uint32_t> draw_rank(duration at) {
    const auto first = dice_.below(workers_);
    for (std::uint32_t i = 0; i < workers_; ++i) {
      const auto rank = static_cast<std::uint32_t>((first + i) % workers_);
      const auto recent = std::ranges::count_if(
          plan_, [&](const strike& s) { return s.rank == rank && at - s.at < std::chrono::minutes{1}; });
      if (recent < strikes_a_minute_max) return rank;
    }
    return std::nullopt;
  }

  const plan_settings& settings_;
  std::uint32_t workers_;
  dice dice_;
  bool director_dies_{false};
  std::vector<strike> plan_;
};

} // namespace

bool strike::kills_director() const {
  if (inside) return inside->kind == fault_kind::director_kill;
  return !rank && lasting == duration{0};
}

std::string to_text(const strike& one) {
  if (one.inside) return troupe::to_text(*one.inside);
  const auto whom = one.rank ? "worker=" + std::to_string(*one.rank) : std::string{"director"};
  const auto length = one.lasting == duration{0} ? "" : ",for=" + format_duration(one.lasting);
  return one.kind + ":" + whom + "@after=" + format_duration(one.at) + length;
}

std::vector<std::string_view> known_kinds() {
  std::vector<std::string_view> names;
  for (const auto& row : rows)
    names.push_back(to_string(row.kind));
  names.insert(names.end(), outside_kinds.begin(), outside_kinds.end());
  return names;
}

std::vector<strike> draw_plan(const plan_settings& settings, std::uint64_t run, duration length,
                              std::uint32_t workers) {
  return drawing{settings, run, workers}.plan(length);
}

std::string to_toml(std::span<const strike> plan) {
  std::string text;
  for (const auto& one : plan) {
    if (one.inside)
      text += "[[fault]]\nspec = \"" + to_text(one) + "\"\n\n";
    else
      text += "# from outside: " + to_text(one) + "\n\n";
  }
  return text;
}

} // namespace troupe::chaos
