#include "runtime/checkpoint/json_text.hpp"

#include <set>
#include <vector>

#include "runtime/checkpoint/limits.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;

// Watches the parser's events for what the finished tree no longer shows.
class strictness {
public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > static_cast<int>(limits::json_depth_max)) {
      if (problem_.empty()) problem_ = "is nested too deeply";
      return false; // drops the subtree
    }
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end && !keys_.empty()) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && problem_.empty()) problem_ = "has the key '" + key + "' twice";
    }
    return true;
  }
  [[nodiscard]] const std::string& problem() const { return problem_; }

private:
  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

} // namespace

expected<json> parse_strict_json(std::string_view text, const std::string& what) {
  strictness watch;
  auto parsed = json::parse(text.begin(), text.end(), std::ref(watch), false);
  if (!watch.problem().empty()) return error{errc::corrupt, what + " " + watch.problem()};
  if (parsed.is_discarded()) return error{errc::corrupt, what + " is not valid JSON"};
  if (!parsed.is_object()) return error{errc::corrupt, what + " is not a JSON object"};
  return parsed;
}

bool is_utf8(std::string_view text) {
  // The library's own check: what it refuses to write could not be read back.
  try {
    return !json(std::string{text}).dump().empty();
  } catch (const json::exception&) {
    return false;
  }
}

object_reader::object_reader(const json& object, std::string what)
    : object_{object}
    , what_{std::move(what)} {
  if (!object_.is_object()) complain("is not an object");
}

void object_reader::complain(const std::string& problem) {
  if (!problem_) problem_ = what_ + " " + problem;
}

expected<void> object_reader::result() const {
  if (problem_) return error{errc::corrupt, *problem_};
  return {};
}

const json* object_reader::find(const char* key) {
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  if (at == object_.end()) {
    complain("lacks '" + std::string{key} + "'");
    return nullptr;
  }
  return &*at;
}

std::uint64_t object_reader::number(const char* key, std::uint64_t max) {
  const auto* value = find(key);
  if (value == nullptr) return 0;
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max) {
    complain("has a '" + std::string{key} + "' that is not a number from 0 to " + std::to_string(max));
    return 0;
  }
  return value->get<std::uint64_t>();
}

std::string object_reader::text(const char* key, std::size_t bytes_max) {
  const auto* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string() || value->get_ref<const std::string&>().size() > bytes_max) {
    complain("has a '" + std::string{key} + "' that is not a text of at most " + std::to_string(bytes_max) +
             " bytes");
    return {};
  }
  return value->get<std::string>();
}

std::string object_reader::text_if_there(const char* key, std::size_t bytes_max) {
  return object_.is_object() && object_.contains(key) ? text(key, bytes_max) : std::string{};
}

json object_reader::array(const char* key, std::size_t items_max) {
  const auto* value = find(key);
  if (value == nullptr) return json::array();
  if (!value->is_array() || value->size() > items_max) {
    complain("has a '" + std::string{key} + "' that is not a list of at most " + std::to_string(items_max));
    return json::array();
  }
  return *value;
}

} // namespace troupe
