#include "cli/chaos/event_file.hpp"

#include <fstream>

namespace troupe::chaos {

std::vector<nlohmann::json> read_events(const std::filesystem::path& file) {
  std::vector<nlohmann::json> events;
  std::ifstream lines{file};
  for (std::string line; std::getline(lines, line) && !lines.eof();) {
    auto event = nlohmann::json::parse(line, nullptr, false);
    if (event.is_object()) events.push_back(std::move(event));
  }
  return events;
}

std::string word(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<double> number(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? std::optional{found->get<double>()} : std::nullopt;
}

} // namespace troupe::chaos
