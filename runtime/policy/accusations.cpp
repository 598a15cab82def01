#include "runtime/policy/accusations.hpp"

#include <algorithm>
#include <tuple>

namespace troupe {

std::set<std::uint32_t> accusations::slots() const {
  std::set<std::uint32_t> out;
  for (const auto& [by, against] : told_)
    out.insert({by, against});
  return out;
}

std::size_t accusations::missed(std::uint32_t slot) const {
  std::set<std::uint32_t> others;
  for (const auto& [by, against] : told_) {
    if (by == slot) others.insert(against);
    if (against == slot) others.insert(by);
  }
  return others.size();
}

std::size_t accusations::accused(std::uint32_t slot) const {
  return static_cast<std::size_t>(
      std::ranges::count(told_, slot, &std::pair<std::uint32_t, std::uint32_t>::second));
}

std::uint32_t accusations::blamed() const {
  const auto all = slots();
  return *std::ranges::max_element(all, {}, [this](std::uint32_t slot) {
    return std::tuple{missed(slot), accused(slot), slot};
  });
}

} // namespace troupe
