#include "runtime/checkpoint/version_name.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace troupe {
namespace {

constexpr std::string_view step_prefix = "step-";

constexpr std::string_view marker_of(version_state state) {
  switch (state) {
  case version_state::partial:
    return ".partial-";
  case version_state::retired:
    return ".retired-";
  case version_state::removed:
    return ".removed-";
  case version_state::abandoned:
    return "abandoned-";
  case version_state::whole:
    break;
  }
  return "";
}

std::optional<step_id> parse_whole(std::string_view name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const auto digits = name.substr(step_prefix.size());
  std::uint64_t value = 0;
  const auto* end = digits.data() + digits.size();
  const auto [rest, status] = std::from_chars(digits.data(), end, value);
  if (status != std::errc{} || rest != end || whole_name(step_id{value}) != name) return std::nullopt;
  return step_id{value};
}

} // namespace

std::string whole_name(step_id step) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "step-%012llu", static_cast<unsigned long long>(step.value()));
  return text.data();
}

std::string marked_name(version_state state, step_id step, incarnation_id by) {
  return std::string{marker_of(state)} + whole_name(step) + "-" + to_string(by);
}

std::optional<version_name> parse_version_name(std::string_view name) {
  if (const auto step = parse_whole(name)) return version_name{version_state::whole, *step};
  for (const auto state :
       {version_state::partial, version_state::retired, version_state::removed, version_state::abandoned}) {
    if (!name.starts_with(marker_of(state))) continue;
    name.remove_prefix(marker_of(state).size());
    const auto dash = name.rfind('-');
    if (dash == std::string_view::npos || name.size() - dash - 1 != 32) return std::nullopt;
    if (const auto step = parse_whole(name.substr(0, dash))) return version_name{state, *step};
    return std::nullopt;
  }
  return std::nullopt;
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string path{directory};
  if (!path.empty() && path.back() != '/') path += '/';
  return path += name;
}

bool is_version_file_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 200 && name.front() != '.' && name != manifest_name &&
         std::all_of(name.begin(), name.end(), allowed);
}

} // namespace troupe
