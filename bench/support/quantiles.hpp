// Quantiles of a few measurements: what a table says about repetitions.
#pragma once

#include <vector>

namespace troupe::bench {

// The smallest value that `fraction` of the values do not exceed; 0 when there are none.
[[nodiscard]] double quantile(std::vector<double> values, double fraction);
// The middle one, or the mean of the two in the middle; 0 when there are none.
[[nodiscard]] double median(std::vector<double> values);
// Element by element a / b, as far as both go; pairs were measured one after the other.
[[nodiscard]] std::vector<double> ratios(const std::vector<double>& a, const std::vector<double>& b);

} // namespace troupe::bench
