#include "runtime/policy/nearest_name.hpp"

#include <algorithm>
#include <vector>

namespace troupe {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cell((a.size() + 1) * width);
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      auto& here = cell[i * width + j];
      if (i == 0 || j == 0) {
        here = i + j;
        continue;
      }
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      here = std::min({cell[(i - 1) * width + j] + 1, cell[i * width + j - 1] + 1,
                       cell[(i - 1) * width + j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        here = std::min(here, cell[(i - 2) * width + j - 2] + 1);
    }
  }
  return cell.back();
}

} // namespace

std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> known) {
  constexpr std::size_t length_max = 64; // nobody meant a longer name
  if (wrong.empty() || wrong.size() > length_max) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const auto name : known) {
    if (const auto d = distance(wrong, name); d < best_distance) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

std::string listed(std::span<const std::string_view> names) {
  std::string text;
  for (const auto name : names)
    text += (text.empty() ? "" : ", ") + std::string{name};
  return text;
}

} // namespace troupe
