#include "runtime/base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

namespace troupe {
namespace {

struct unit {
  std::string_view name;
  double factor;
};

constexpr std::array<unit, 6> duration_units{
    {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}}};
constexpr std::array<unit, 5> size_units{
    {{"", 1.0}, {"B", 1.0}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}}};
constexpr double value_max = 9e18;

template <std::size_t N>
expected<double> parse(std::string_view text, const std::array<unit, N>& units, std::string_view accepted) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (status == std::errc{} && number >= 0) {
    const std::string_view name{rest, static_cast<std::size_t>(end - rest)};
    for (const auto& candidate : units) {
      if (candidate.name == name && number * candidate.factor <= value_max) return number * candidate.factor;
    }
  }
  return error{errc::bad_argument, "'" + std::string{text} + "' is not " + std::string{accepted}};
}

std::string format(double value, std::string_view unit_name) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.6g%.*s", value, static_cast<int>(unit_name.size()),
                unit_name.data());
  return text.data();
}

} // namespace

expected<duration> parse_duration(std::string_view text) {
  auto ns = parse(text, duration_units, "a duration such as 250ms, 5s or 2min");
  if (!ns) return ns.failure();
  return duration{static_cast<duration::rep>(std::llround(*ns))};
}

std::string format_duration(duration d) {
  const auto ns = static_cast<double>(d.count());
  const unit* best = &duration_units[0];
  for (const auto& candidate : duration_units) {
    if (ns >= candidate.factor) best = &candidate;
  }
  return format(ns / best->factor, best->name);
}

expected<std::uint64_t> parse_size(std::string_view text) {
  auto bytes = parse(text, size_units, "a size such as 64KiB or 1MiB");
  if (!bytes) return bytes.failure();
  return static_cast<std::uint64_t>(std::llround(*bytes));
}

std::string format_size(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  const unit* best = &size_units[1];
  for (const auto& candidate : size_units) {
    if (!candidate.name.empty() && value >= candidate.factor) best = &candidate;
  }
  return format(value / best->factor, best->name);
}

std::string format_number(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return {digits.data(), end};
}

} // namespace troupe
