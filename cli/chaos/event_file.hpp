// Event file: what a program wrote with --events, read as it is; fields that are absent or of another type
// are nothing, for the program may be anybody's.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace troupe::chaos {

// Whole lines only; what is no JSON object is left out.
[[nodiscard]] std::vector<nlohmann::json> read_events(const std::filesystem::path& file);

[[nodiscard]] std::string word(const nlohmann::json& object, const char* field);
[[nodiscard]] std::optional<double> number(const nlohmann::json& object, const char* field);

} // namespace troupe::chaos
