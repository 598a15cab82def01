#include "bench/support/quantiles.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace troupe::bench {

double quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  const auto place = std::ceil(std::clamp(fraction, 0.0, 1.0) * count) - 1;
  return values[static_cast<std::size_t>(std::max(place, 0.0))];
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (b[i] > 0) out.push_back(a[i] / b[i]);
  return out;
}

} // namespace troupe::bench
