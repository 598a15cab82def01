// JSON as it is read from storage: bounded, strict, and never trusted. Private to the checkpoint room.
//
// Strict: no repeated keys, no nesting beyond limits::json_depth_max, whole text consumed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/base/error.hpp"

namespace troupe {

// errc::corrupt; `what` opens the error's text ("manifest.json").
[[nodiscard]] expected<nlohmann::json> parse_strict_json(std::string_view text, const std::string& what);

[[nodiscard]] bool is_utf8(std::string_view text);

// Reads the fields of one object and remembers the first problem, so that a caller checks once at the end.
class object_reader {
public:
  object_reader(const nlohmann::json& object, std::string what);
  [[nodiscard]] std::uint64_t number(const char* key, std::uint64_t max = UINT64_MAX);
  [[nodiscard]] std::string text(const char* key, std::size_t bytes_max);
  [[nodiscard]] std::string text_if_there(const char* key, std::size_t bytes_max); // else empty
  [[nodiscard]] nlohmann::json array(const char* key, std::size_t items_max);
  void complain(const std::string& problem);
  // errc::corrupt with the first problem, where there was one.
  [[nodiscard]] expected<void> result() const;

private:
  const nlohmann::json* find(const char* key);
  const nlohmann::json& object_;
  std::string what_;
  std::optional<std::string> problem_;
};

} // namespace troupe
