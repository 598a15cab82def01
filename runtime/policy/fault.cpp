#include "runtime/policy/fault.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "runtime/base/limits.hpp"
#include "runtime/base/units.hpp"
#include "runtime/policy/nearest_name.hpp"

namespace troupe {
namespace {

using place = fault_target::place;
using choice = fault_target::choice;

enum : unsigned { on_worker = 1, on_prefetcher = 2, on_checkpoint = 4, on_none = 8, on_newest = 16 };
enum : unsigned { key_for = 1, key_factor = 2, key_code = 4, key_way = 8, must_for = 16 };
enum : unsigned { ends = 1, borne = 2, at_seam = 4 };

struct kind_row {
  fault_kind kind;
  unsigned targets; // the lowest bit is the default
  unsigned keys;
  unsigned traits;
};

constexpr std::size_t kind_count = 19;
constexpr std::array<std::string_view, kind_count> names{"kill",
                                                         "segv",
                                                         "exit",
                                                         "throw",
                                                         "stop",
                                                         "slow",
                                                         "hang-in-collective",
                                                         "skip-collective",
                                                         "cut",
                                                         "clog",
                                                         "path-error",
                                                         "disk-full",
                                                         "disk-slow",
                                                         "torn-write",
                                                         "bit-flip",
                                                         "nan",
                                                         "oom",
                                                         "clock-step",
                                                         "director-kill"};
constexpr std::array<kind_row, kind_count> rows{{
    {fault_kind::kill, on_worker, 0, ends},
    {fault_kind::segv, on_worker, 0, ends},
    {fault_kind::exit, on_worker, key_code, ends},
    {fault_kind::throw_error, on_worker | on_prefetcher, 0, 0},
    {fault_kind::stop, on_worker, key_for, ends},
    {fault_kind::slow, on_worker | on_prefetcher, key_for | key_factor, at_seam | borne},
    {fault_kind::hang_in_collective, on_worker, key_for, at_seam},
    {fault_kind::skip_collective, on_worker, 0, at_seam},
    {fault_kind::cut, on_worker, key_for | key_way, at_seam},
    {fault_kind::clog, on_worker, key_for | key_factor, at_seam | borne},
    {fault_kind::path_error, on_worker, 0, at_seam},
    {fault_kind::disk_full, on_worker | on_none, key_for, at_seam | borne},
    {fault_kind::disk_slow, on_worker | on_none, key_for | key_factor, at_seam | borne},
    {fault_kind::torn_write, on_newest, 0, at_seam},
    {fault_kind::bit_flip, on_checkpoint, 0, borne},
    {fault_kind::nan, on_worker, 0, at_seam},
    {fault_kind::oom, on_worker, 0, 0},
    {fault_kind::clock_step, on_worker, key_for | must_for, at_seam | borne},
    {fault_kind::director_kill, on_none, 0, 0},
}};

constexpr std::array<std::string_view, 3> ways{"both", "in", "out"};

const kind_row& row_of(fault_kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  invariant(index < rows.size() && rows[index].kind == kind, "fault kinds stand in the table, in order");
  return rows[index];
}

error wrong(std::string what, std::string_view accepted) {
  return {errc::bad_argument, std::move(what) + "; accepted: " + std::string{accepted}};
}

std::string quoted(std::string_view text) {
  constexpr std::size_t bytes_max = 80;
  return "'" + std::string{text.substr(0, bytes_max)} + (text.size() > bytes_max ? "...'" : "'");
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Splits at the first `mark`; the second part is empty and `found` false without one.
struct halves {
  std::string_view before;
  std::string_view after;
  bool found;
};
halves split(std::string_view text, char mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, at), text.substr(at + 1), true};
}

expected<fault_kind> parse_kind(std::string_view text) {
  const auto at = std::ranges::find(names, text);
  if (at != names.end()) return static_cast<fault_kind>(at - names.begin());
  const auto near = nearest_name(text, names);
  return wrong("unknown kind " + quoted(text) +
                   (near.empty() ? "" : " (did you mean " + std::string{near} + "?)"),
               listed(names));
}

std::string accepted_targets(const kind_row& row) {
  std::vector<std::string_view> texts;
  if ((row.targets & on_worker) != 0) texts.push_back("worker=N|any|all");
  if ((row.targets & on_prefetcher) != 0) texts.push_back("prefetcher=N|any|all");
  if ((row.targets & on_checkpoint) != 0) texts.push_back("checkpoint=newest|STEP");
  if ((row.targets & on_newest) != 0) texts.push_back("checkpoint=newest");
  if ((row.targets & on_none) != 0) texts.push_back("no target");
  return listed(texts);
}

fault_target default_target(const kind_row& row) {
  if ((row.targets & on_none) != 0) return {};
  if ((row.targets & (on_checkpoint | on_newest)) != 0)
    return {.where = place::checkpoint, .which = choice::newest};
  return {.where = place::worker, .which = choice::any};
}

expected<fault_target> parse_target(const kind_row& row, std::string_view text) {
  const auto refuse = [&] {
    return wrong(std::string{to_string(row.kind)} + ": target " + quoted(text), accepted_targets(row));
  };
  const auto [place_name, which, given] = split(text, '=');
  fault_target target;
  unsigned bit = 0;
  if (place_name == "worker") target.where = place::worker, bit = on_worker;
  if (place_name == "prefetcher") target.where = place::prefetcher, bit = on_prefetcher;
  if (place_name == "checkpoint") target.where = place::checkpoint, bit = on_checkpoint | on_newest;
  if ((row.targets & bit) == 0) return refuse();
  const bool checkpoint = target.where == place::checkpoint;
  if (!given) {
    target.which = checkpoint ? choice::newest : choice::any;
  } else if (!checkpoint && which == "any") {
    target.which = choice::any;
  } else if (!checkpoint && which == "all") {
    target.which = choice::all;
  } else if (checkpoint && which == "newest") {
    target.which = choice::newest;
  } else if (const auto n = number<std::uint64_t>(which);
             n && (checkpoint ? (row.targets & on_checkpoint) != 0 : *n < limits::workers_max)) {
    target.which = choice::one;
    target.number = *n;
  } else {
    return refuse();
  }
  return target;
}

expected<fault_moment> parse_moment(std::string_view text) {
  constexpr std::string_view accepted = "step=N (from 1), every=DURATION, after=DURATION";
  const auto [name, value, given] = split(text, '=');
  fault_moment when;
  if (given && name == "step") {
    const auto n = number<std::uint64_t>(value);
    if (!n || *n == 0) return wrong("step " + quoted(value), accepted);
    when.step = step_id{*n};
    return when;
  }
  if (!given || (name != "every" && name != "after")) return wrong("moment " + quoted(text), accepted);
  when.what = name == "every" ? fault_moment::kind::every : fault_moment::kind::after;
  const auto time = parse_duration(value);
  if (!time || time.value() <= duration::zero())
    return wrong(std::string{name} + " " + quoted(value), "a duration such as 500ms, 30s or 2min");
  when.time = *time;
  return when;
}

std::string accepted_keys(const kind_row& row) {
  std::vector<std::string_view> texts;
  if ((row.keys & key_for) != 0) texts.push_back("for");
  if ((row.keys & key_factor) != 0) texts.push_back("factor");
  if ((row.keys & key_code) != 0) texts.push_back("code");
  if ((row.keys & key_way) != 0) texts.push_back("way");
  texts.push_back("times");
  return listed(texts);
}

expected<void> parse_times(fault& f, std::string_view value) {
  const auto n = number<std::uint32_t>(value);
  if (value == "always")
    f.times = fault::always;
  else if (n && *n > 0 && *n < fault::always)
    f.times = *n;
  else
    return wrong("times " + quoted(value), "a number from 1, always");
  if (f.when.what == fault_moment::kind::after && f.times != 1)
    return wrong("times " + quoted(value) + " with after=", "1; every=DURATION repeats");
  return {};
}

expected<void> parse_key(fault& f, std::string_view text) {
  const auto& row = row_of(f.kind);
  const auto [name, value, given] = split(text, '=');
  if (name == "times" && given) return parse_times(f, value);
  if (name == "for" && given && (row.keys & key_for) != 0) {
    const auto time = parse_duration(value);
    if (!time || time.value() <= duration::zero())
      return wrong("for " + quoted(value), "a duration such as 500ms, 5s or 2min");
    f.lasting = *time;
    return {};
  }
  if (name == "factor" && given && (row.keys & key_factor) != 0) {
    const auto n = number<double>(value);
    if (!n || !(*n >= 1.0 && *n <= 1e6))
      return wrong("factor " + quoted(value), "a number from 1 to 1000000");
    f.factor = *n;
    return {};
  }
  if (name == "code" && given && (row.keys & key_code) != 0) {
    const auto n = number<int>(value);
    if (!n || *n < 0 || *n > 255) return wrong("code " + quoted(value), "0 to 255");
    f.code = *n;
    return {};
  }
  if (name == "way" && given && (row.keys & key_way) != 0) {
    const auto at = std::ranges::find(ways, value);
    if (at == ways.end()) return wrong("way " + quoted(value), listed(ways));
    f.way = static_cast<fault_way>(at - ways.begin());
    return {};
  }
  return wrong(std::string{to_string(f.kind)} + ": key " + quoted(text), accepted_keys(row));
}

// The largest unit that gives a whole number, so that nothing is lost.
std::string exact(duration d) {
  constexpr std::array<std::pair<std::int64_t, std::string_view>, 5> units{
      {{60'000'000'000, "min"}, {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}, {1, "ns"}}};
  const auto unit = std::ranges::find_if(units, [d](const auto& u) { return d.count() % u.first == 0; });
  return std::to_string(d.count() / unit->first) + std::string{unit->second};
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string target_text(const fault_target& target) {
  std::string text;
  switch (target.where) {
  case place::none:
    return text;
  case place::worker:
    text = ":worker=";
    break;
  case place::prefetcher:
    text = ":prefetcher=";
    break;
  case place::checkpoint:
    text = ":checkpoint=";
    break;
  }
  switch (target.which) {
  case choice::one:
    return text + std::to_string(target.number);
  case choice::any:
    return text + "any";
  case choice::all:
    return text + "all";
  case choice::newest:
    return text + "newest";
  }
  return text;
}

} // namespace

std::string_view to_string(fault_kind kind) {
  return names[static_cast<std::size_t>(row_of(kind).kind)];
}

std::span<const std::string_view> fault_names() {
  return names;
}

expected<fault> parse_fault(std::string_view spec) {
  const auto [head, tail, timed] = split(spec, '@');
  const auto [kind_name, target_name, aimed] = split(head, ':');
  const auto kind = parse_kind(kind_name);
  if (!kind) return kind.failure();
  const auto& row = row_of(*kind);
  fault f{.kind = *kind, .target = default_target(row), .when = {}};
  if (aimed) {
    const auto target = parse_target(row, target_name);
    if (!target) return target.failure();
    f.target = *target;
  }
  if (!timed) return wrong("no moment given", "KIND[:TARGET]@step=N, @every=DURATION or @after=DURATION");
  auto [moment, keys, more] = split(tail, ',');
  const auto when = parse_moment(moment);
  if (!when) return when.failure();
  f.when = *when;
  if (f.when.what == fault_moment::kind::every) f.times = fault::always;
  while (more) {
    const auto next = split(keys, ',');
    if (const auto parsed = parse_key(f, next.before); !parsed) return parsed.failure();
    keys = next.after;
    more = next.found;
  }
  if ((row.keys & must_for) != 0 && !f.lasting)
    return wrong(std::string{to_string(*kind)} + ": no for=", "for=DURATION, how far the clock jumps");
  return f;
}

std::string to_text(const fault& f) {
  std::string text = std::string{to_string(f.kind)} + target_text(f.target) + "@";
  switch (f.when.what) {
  case fault_moment::kind::step:
    text += "step=" + to_string(f.when.step);
    break;
  case fault_moment::kind::every:
    text += "every=" + exact(f.when.time);
    break;
  case fault_moment::kind::after:
    text += "after=" + exact(f.when.time);
    break;
  }
  if (f.lasting) text += ",for=" + exact(*f.lasting);
  if (f.factor) text += ",factor=" + shortest(*f.factor);
  if (f.code) text += ",code=" + std::to_string(*f.code);
  if (f.way) text += ",way=" + std::string{ways[static_cast<std::size_t>(*f.way)]};
  const auto usual = f.when.what == fault_moment::kind::every ? fault::always : 1;
  if (f.times != usual) text += ",times=" + (f.times == fault::always ? "always" : std::to_string(f.times));
  return text;
}

bool ends_process(fault_kind kind) {
  return (row_of(kind).traits & ends) != 0;
}

bool is_borne(fault_kind kind) {
  return (row_of(kind).traits & borne) != 0;
}

bool strikes_seam(fault_kind kind) {
  return (row_of(kind).traits & at_seam) != 0;
}

} // namespace troupe
