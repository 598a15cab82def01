#include "runtime/telemetry/flight_dump.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "runtime/base/limits.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uint64_t form_version = 1;
constexpr std::size_t flight_writers = 4;
constexpr std::string_view prefix = "flight-";
constexpr std::string_view suffix = ".jsonl";

std::string line_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// As people will read it.
std::string one_line(std::string_view text) {
  std::string line{text.substr(0, flight_text_bytes_max)};
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return line;
}

json header_json(const flight_dump& dump) {
  const auto& about = dump.about;
  auto groups = json::array();
  for (const auto& one : about.groups)
    groups.push_back({{"group", one.group}, {"ranks", one.ranks}});
  return {{"flight", form_version},
          {"generation", about.generation.value()},
          {"rank", about.rank.value()},
          {"world", about.world},
          {"by", to_string(about.by)},
          {"cause", one_line(about.cause)},
          {"now_ns", to_ns(about.now)},
          {"step_started", about.step_started.value()},
          {"step_applied", about.step_applied.value()},
          {"arrivals", about.arrivals},
          {"groups", std::move(groups)},
          {"before", about.before},
          {"records", dump.records.size()}};
}

json record_json(const flight_record& what) {
  json out{{"id", what.id},
           {"group", what.group},
           {"kind", between_two(what.call) ? "p2p" : "collective"},
           {"sequence", what.sequence},
           {"call", to_string(what.call)},
           {"type", to_string(what.type)},
           {"op", to_string(what.op)},
           {"peer", what.peer},
           {"elements", what.elements},
           {"bytes", what.elements * size_of(what.type)},
           {"step", what.step},
           {"created_ns", what.created_ns},
           {"started_ns", what.started_ns},
           {"finished_ns", what.finished_ns},
           {"outcome", to_string(what.outcome)}};
  return out;
}

// Reads fields of one line; the first that does not fit is remembered.
class fields {
public:
  explicit fields(const json& from)
      : from_{from} {}
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

  template <class Number>
  void number(const char* name, Number& into) {
    const auto* at = find(name);
    if (at == nullptr) return;
    if (!at->is_number_integer()) return refuse(name);
    if constexpr (std::is_signed_v<Number>) {
      if (at->is_number_unsigned() && at->template get<std::uint64_t>() > INT64_MAX) return refuse(name);
      into = at->template get<std::int64_t>();
    } else {
      if (!at->is_number_unsigned()) return refuse(name);
      const auto value = at->template get<std::uint64_t>();
      if (value > std::numeric_limits<Number>::max()) return refuse(name);
      into = static_cast<Number>(value);
    }
  }
  void text(const char* name, std::string& into) {
    const auto* at = find(name);
    if (at == nullptr) return;
    if (!at->is_string()) return refuse(name);
    into = one_line(at->template get<std::string>());
  }
  // One of the first `count` values, by its name.
  template <class Enum>
  void word(const char* name, std::size_t count, Enum& into) {
    std::string found;
    text(name, found);
    if (!wrong_.empty()) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (to_string(static_cast<Enum>(i)) == found) return void(into = static_cast<Enum>(i));
    }
    refuse(name);
  }
  template <class Number>
  void numbers(const char* name, std::vector<Number>& into, std::size_t most) {
    const auto* at = find(name);
    if (at == nullptr) return;
    if (!at->is_array() || at->size() > most) return refuse(name);
    for (const auto& one : *at) {
      if (!one.is_number_unsigned() || one.template get<std::uint64_t>() > std::numeric_limits<Number>::max())
        return refuse(name);
      into.push_back(one.template get<Number>());
    }
  }
  void refuse(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }

private:
  const json* find(const char* name) {
    const auto at = from_.find(name);
    if (at != from_.end()) return &*at;
    refuse(name);
    return nullptr;
  }
  const json& from_;
  std::string wrong_;
};

void read_groups(const json& line, fields& in, std::vector<flight_group>& into) {
  const auto at = line.find("groups");
  if (at == line.end() || !at->is_array() || at->size() > flight_groups_max) return in.refuse("groups");
  for (const auto& one : *at) {
    if (!one.is_object()) return in.refuse("groups");
    fields group{one};
    flight_group made;
    group.number("group", made.group);
    group.numbers("ranks", made.ranks, limits::workers_max);
    if (!group.wrong().empty()) return in.refuse("groups");
    into.push_back(std::move(made));
  }
}

template <class Id>
void read_id(fields& in, const char* name, Id& into) {
  typename Id::rep value{};
  in.number(name, value);
  into = Id{value};
}

expected<flight_header> read_header(const json& line, std::uint64_t& records) {
  fields in{line};
  std::uint64_t form = 0;
  in.number("flight", form);
  if (!in.wrong().empty()) return error{errc::corrupt, "no flight dump"};
  if (form != form_version)
    return error{errc::wrong_version, "a flight dump of form " + std::to_string(form) +
                                          "; this build reads " + std::to_string(form_version)};
  flight_header out;
  std::int64_t now = 0;
  read_id(in, "generation", out.generation);
  read_id(in, "rank", out.rank);
  in.number("world", out.world);
  in.word("by", flight_writers, out.by);
  in.text("cause", out.cause);
  in.number("now_ns", now);
  read_id(in, "step_started", out.step_started);
  read_id(in, "step_applied", out.step_applied);
  in.numbers("arrivals", out.arrivals, limits::workers_max);
  read_groups(line, in, out.groups);
  in.number("before", out.before);
  in.number("records", records);
  if (out.world == 0 || out.world > limits::workers_max || out.rank.value() >= out.world) in.refuse("rank");
  if (!in.wrong().empty()) return error{errc::corrupt, "line 1: field '" + in.wrong() + "' does not fit"};
  out.now = time_from_ns(now);
  return out;
}

std::optional<flight_record> read_record(const json& line, const flight_header& about) {
  fields in{line};
  flight_record out{.generation = about.generation.value()};
  in.number("id", out.id);
  in.number("group", out.group);
  in.number("sequence", out.sequence);
  in.word("call", collective_calls, out.call);
  in.word("type", element_types, out.type);
  in.word("op", reduce_ops, out.op);
  in.number("peer", out.peer);
  in.number("elements", out.elements);
  in.number("step", out.step);
  in.number("created_ns", out.created_ns);
  in.number("started_ns", out.started_ns);
  in.number("finished_ns", out.finished_ns);
  in.word("outcome", call_outcomes, out.outcome);
  if (!in.wrong().empty()) return std::nullopt;
  return out;
}

// The next whole line of `text`; nothing once there is none.
std::optional<std::string_view> take_line(std::string_view& text) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const auto line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

json parse_line(std::string_view line) {
  return json::parse(line, nullptr, false);
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ptr != end || parsed.ec != std::errc{}) return std::nullopt;
  return value;
}

void remove_too_old(storage& files, const std::string& directory, generation_id newest) {
  if (newest.value() < flight_generations_kept) return;
  const generation_id too_old{newest.value() - flight_generations_kept};
  const auto names = files.list(directory);
  if (!names) return;
  for (const auto& name : *names) {
    const auto which = parse_flight_file_name(name);
    if (which && which->generation <= too_old) (void)files.remove_all(directory + "/" + name);
  }
}

} // namespace

std::string_view to_string(flight_writer by) {
  constexpr std::string_view names[flight_writers]{"worker", "failed", "director", "asked"};
  return names[static_cast<std::size_t>(by)];
}

flight_dump make_flight_dump(flight_header about, const flight_ring& ring) {
  flight_dump out{.about = std::move(about), .records = ring.records(), .damage = {}};
  const bool lost = !out.records.empty() && out.records.front().generation == out.about.generation.value();
  out.about.before = lost ? out.records.front().id - 1 : 0;
  std::erase_if(out.records,
                [&](const flight_record& one) { return one.generation != out.about.generation.value(); });
  return out;
}

std::string to_text(const flight_dump& dump) {
  auto text = line_of(header_json(dump));
  for (const auto& record : dump.records)
    text += line_of(record_json(record));
  return text;
}

expected<flight_dump> parse_flight_dump(std::string_view text) {
  if (text.size() > flight_file_bytes_max) return error{errc::corrupt, "larger than a flight dump can be"};
  const auto first = take_line(text);
  if (!first) return error{errc::corrupt, "no whole line"};
  const auto head = parse_line(*first);
  if (!head.is_object()) return error{errc::corrupt, "no flight dump"};
  std::uint64_t announced = 0;
  auto about = read_header(head, announced);
  if (!about) return about.failure();
  flight_dump out{.about = std::move(*about), .records = {}, .damage = {}};
  while (const auto line = take_line(text)) {
    const auto at = std::to_string(out.records.size() + 2);
    if (out.records.size() == std::min<std::uint64_t>(announced, flight_records_max)) {
      out.damage = "line " + at + ": more records than announced";
      return out;
    }
    const auto value = parse_line(*line);
    const auto record = value.is_object() ? read_record(value, out.about) : std::nullopt;
    if (!record) {
      out.damage = "line " + at + ": no record";
      return out;
    }
    out.records.push_back(*record);
  }
  if (out.records.size() < announced)
    out.damage =
        "cut off: " + std::to_string(out.records.size()) + " of " + std::to_string(announced) + " records";
  return out;
}

std::string flight_file_name(generation_id generation, rank_id rank) {
  return std::string{prefix} + to_string(generation) + "-" + to_string(rank) + std::string{suffix};
}

std::optional<flight_file> parse_flight_file_name(std::string_view name) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() < prefix.size() + suffix.size())
    return std::nullopt;
  const auto middle = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  const auto dash = middle.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto generation = number_of(middle.substr(0, dash));
  const auto rank = number_of(middle.substr(dash + 1));
  if (!generation || !rank || *rank >= limits::workers_max) return std::nullopt;
  return flight_file{generation_id{*generation}, rank_id{static_cast<std::uint32_t>(*rank)}};
}

expected<void> write_flight_dump(storage& files, const std::string& directory, const flight_dump& dump) {
  if (auto made = files.create_directories(directory); !made) return made;
  const auto text = to_text(dump);
  const std::array pieces{std::as_bytes(std::span{text})};
  const auto path = directory + "/" + flight_file_name(dump.about.generation, dump.about.rank);
  auto written = files.write_file(path, pieces);
  remove_too_old(files, directory, dump.about.generation);
  return written;
}

expected<void> clear_flight_directory(storage& files, const std::string& directory) {
  if (auto made = files.create_directories(directory); !made) return made;
  const auto names = files.list(directory);
  if (!names) return names.failure();
  for (const auto& name : *names) {
    if (!parse_flight_file_name(name)) continue;
    if (auto removed = files.remove_all(directory + "/" + name); !removed) return removed;
  }
  return {};
}

} // namespace troupe
