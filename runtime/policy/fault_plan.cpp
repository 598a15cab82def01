#include "runtime/policy/fault_plan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <toml++/toml.h>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/nearest_name.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 9> entry_keys{"spec",   "kind", "target", "at",   "for",
                                                     "factor", "code", "way",    "times"};

error at_line(std::string_view file, const toml::source_region& where, const std::string& text) {
  return {errc::bad_argument, std::string{file} + ":" + std::to_string(where.begin.line) + ": " + text};
}

std::string known_key_text(std::string_view wrong) {
  const auto near = nearest_name(wrong, entry_keys);
  return "unknown key '" + std::string{wrong} + "'" +
         (near.empty() ? "" : " (did you mean " + std::string{near} + "?)") +
         "; accepted: " + listed(entry_keys);
}

// The line that begins at `from`, short and printable.
std::string shown_line(std::string_view text, std::size_t from) {
  constexpr std::size_t shown_max = 60;
  auto line = text.substr(from, text.find('\n', from) - from);
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  std::string shown{line.substr(0, shown_max)};
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

// toml++ is given ASCII only: what it does about other bytes, above all about malformed ones, can fail an
// assertion of its own. A plan needs them in comments alone, which people write in their language: there each
// becomes a '?'. What is taken for a comment by mistake is refused all the same: no key or value has a '?'.
expected<std::string> in_ascii(std::string_view text, std::string_view file) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::string ascii{text};
  std::size_t line = 1;
  std::size_t line_from = 0;
  char open = '\0'; // the quote that a text began with, or the '#' of a comment
  for (std::size_t i = 0; i < ascii.size(); ++i) {
    auto& c = ascii[i];
    if (c == '\n') {
      ++line;
      line_from = i + 1;
      open = '\0';
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      if (open != '#')
        return error{errc::bad_argument, std::string{file} + ":" + std::to_string(line) + ": '" +
                                             shown_line(text, line_from) +
                                             "': not ASCII; accepted: ASCII, and any text in comments"};
      c = '?';
    } else if (open == '\0' && (c == '#' || c == '"' || c == '\'')) {
      open = c;
    } else if (c == open && c != '#') {
      open = '\0';
    }
  }
  return ascii;
}

// The text of a scalar as SPEC writes it; nothing for another type or for text that would read as more.
std::optional<std::string> scalar_text(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) {
    if (text->find_first_of(",@\n") != std::string::npos) return std::nullopt;
    return *text;
  }
  if (const auto whole = node.value_exact<std::int64_t>()) return std::to_string(*whole);
  if (const auto real = node.value_exact<double>()) {
    std::array<char, 32> text{};
    return std::string{text.data(), std::to_chars(text.data(), text.data() + text.size(), *real).ptr};
  }
  return std::nullopt;
}

// Writes one [[fault]] table as a SPEC, so that both forms meet the same rules.
expected<std::string> spec_of(const toml::table& entry, std::string_view file) {
  if (const auto* spec = entry.get("spec")) {
    const auto text = spec->value_exact<std::string>();
    if (!text || entry.size() != 1)
      return at_line(file, spec->source(), "spec must be one string and stand alone");
    return *text;
  }
  std::string kind;
  std::string target;
  std::string at;
  std::string keys;
  for (const auto& [key, value] : entry) {
    const std::string_view name = key.str();
    if (std::ranges::find(entry_keys, name) == entry_keys.end())
      return at_line(file, key.source(), known_key_text(name));
    auto text = scalar_text(value);
    if (!text)
      return at_line(file, value.source(),
                     std::string{name} + ": accepted: a number, or text without ',' and '@'");
    if (name == "kind")
      kind = *text;
    else if (name == "target")
      target = ":" + *text;
    else if (name == "at")
      at = "@" + *text;
    else
      keys += "," + std::string{name} + "=" + *text;
  }
  return kind + target + at + keys;
}

bool strikes_rank(const fault& f, std::size_t index, const fault_point& here, std::uint32_t strikes) {
  if (here.role != fault_role::worker && here.role != fault_role::prefetcher) return true;
  switch (f.target.which) {
  case fault_target::choice::one:
    return here.rank.value() == f.target.number;
  case fault_target::choice::any: { // FP-2
    const counter_rng choose{here.seed ^ index, stream_of("fault victim")};
    return here.world > 0 && choose.bits(strikes) % here.world == here.rank.value();
  }
  case fault_target::choice::all:
  case fault_target::choice::newest:
    return true;
  }
  return false;
}

bool has_come(const fault_moment& when, const fault_point& here, std::uint32_t strikes) {
  switch (when.what) {
  case fault_moment::kind::step: // FP-3
    return here.previous < when.step && when.step <= here.step;
  case fault_moment::kind::every:
    return here.elapsed / when.time > static_cast<duration::rep>(strikes);
  case fault_moment::kind::after:
    return here.elapsed >= when.time;
  }
  return false;
}

} // namespace

expected<fault_plan> parse_fault_plan(std::string_view text, std::string_view file) {
  const auto ascii = in_ascii(text, file);
  if (!ascii) return ascii.failure();
  toml::table document;
  try {
    document = toml::parse(*ascii, file);
  } catch (const toml::parse_error& bad) {
    return at_line(file, bad.source(), std::string{bad.description()});
  }
  fault_plan plan;
  for (const auto& [key, value] : document) {
    if (key.str() != "fault")
      return at_line(file, key.source(),
                     "unknown key '" + std::string{key.str()} + "'; accepted: [[fault]] tables");
    const auto* entries = value.as_array();
    if (entries == nullptr) return at_line(file, key.source(), "fault must be [[fault]] tables");
    for (const auto& entry : *entries) {
      const auto* table = entry.as_table();
      if (table == nullptr) return at_line(file, entry.source(), "fault must be [[fault]] tables");
      const auto spec = spec_of(*table, file);
      if (!spec) return spec.failure();
      const auto parsed = parse_fault(*spec);
      if (!parsed) return at_line(file, entry.source(), parsed.failure().text);
      if (plan.size() == plan_faults_max)
        return at_line(file, entry.source(), "too many faults; accepted: " + std::to_string(plan_faults_max));
      plan.push_back(*parsed);
    }
  }
  return plan;
}

fault_role role_of(const fault& f) {
  switch (f.target.where) {
  case fault_target::place::prefetcher:
    return fault_role::prefetcher;
  case fault_target::place::checkpoint:
    return fault_role::checkpointer;
  case fault_target::place::none:
    return f.kind == fault_kind::director_kill ? fault_role::director : fault_role::checkpointer;
  case fault_target::place::worker:
    return fault_role::worker;
  }
  return fault_role::worker;
}

fired_faults::count& fired_faults::at(std::size_t fault, rank_id rank) {
  const auto place = std::ranges::lower_bound(counts_, std::pair{fault, rank}, {}, [](const count& c) {
    return std::pair{c.fault, c.rank};
  });
  const bool known = place != counts_.end() && place->fault == fault && place->rank == rank;
  return known ? *place : *counts_.insert(place, {fault, rank, 0});
}

void fired_faults::mark(std::size_t fault, rank_id rank) {
  ++at(fault, rank).times;
}

void fired_faults::merge(const fired_faults& other) {
  for (const auto& c : other.counts_) {
    auto& times = at(c.fault, c.rank).times;
    times = std::max(times, c.times);
  }
}

std::uint32_t fired_faults::total(std::size_t fault) const {
  std::uint32_t sum = 0;
  for (const auto& c : counts_) {
    if (c.fault == fault) sum += c.times;
  }
  return sum;
}

std::uint32_t fired_faults::on(std::size_t fault, rank_id rank) const {
  for (const auto& c : counts_) {
    if (c.fault == fault && c.rank == rank) return c.times;
  }
  return 0;
}

std::string fired_faults::encode() const {
  std::string text;
  for (const auto& c : counts_)
    text += (text.empty() ? "" : " ") + std::to_string(c.fault) + "/" + to_string(c.rank) + "/" +
            std::to_string(c.times);
  return text;
}

expected<fired_faults> fired_faults::decode(std::string_view text) {
  fired_faults fired;
  const error bad{errc::corrupt, "struck faults: '" + std::string{text.substr(0, 80)} + "' is not a list"};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const auto read = [&](auto& value, char stop) {
    const auto [rest, status] = std::from_chars(at, end, value);
    if (status != std::errc{}) return false;
    if (rest == end) return at = rest, stop == ' ';
    at = rest + 1;
    return *rest == stop && at != end; // something follows a separator
  };
  while (at != end) {
    count c{};
    std::uint32_t rank = 0;
    if (!read(c.fault, '/') || !read(rank, '/') || !read(c.times, ' ')) return bad;
    c.rank = rank_id{rank};
    const bool in_order =
        fired.counts_.empty() ||
        std::pair{fired.counts_.back().fault, fired.counts_.back().rank} < std::pair{c.fault, c.rank};
    if (!in_order || c.fault >= plan_faults_max) return bad;
    fired.counts_.push_back(c);
  }
  return fired;
}

std::vector<std::size_t> due(const fault_plan& plan, const fault_point& here, const fired_faults& fired) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const auto& f = plan[i];
    if (role_of(f) != here.role) continue;
    const bool each = f.target.which == fault_target::choice::all;
    const auto strikes = each ? fired.on(i, here.rank) : fired.total(i); // FP-1
    if (f.times != fault::always && strikes >= f.times) continue;
    if (has_come(f.when, here, strikes) && strikes_rank(f, i, here, strikes)) found.push_back(i);
  }
  return found;
}

} // namespace troupe
