#include "runtime/telemetry/latency_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe {

// Values below 2^precision_bits have a bucket each; above, each octave is cut into 2^precision_bits.
std::size_t latency_histogram::index_of(std::uint64_t ns) {
  constexpr auto linear = std::uint64_t{1} << precision_bits;
  if (ns < linear) return static_cast<std::size_t>(ns);
  const auto octave = static_cast<unsigned>(std::bit_width(ns)) - precision_bits; // 1 for the first
  const auto within = (ns >> (octave - 1)) - linear;
  const auto index = (std::uint64_t{octave} << precision_bits) + within;
  return static_cast<std::size_t>(std::min<std::uint64_t>(index, bucket_count - 1));
}

std::uint64_t latency_histogram::upper_end_of(std::size_t index) {
  constexpr auto linear = std::uint64_t{1} << precision_bits;
  if (index < linear) return index;
  const auto octave = index >> precision_bits;
  const auto within = index & (linear - 1);
  return ((linear + within + 1) << (octave - 1)) - 1;
}

void latency_histogram::record(duration value) {
  const auto bounded = std::max(value, duration{0});
  ++counts_[index_of(static_cast<std::uint64_t>(bounded.count()))];
  ++count_;
  max_ = std::max(max_, bounded);
}

void latency_histogram::merge(const latency_histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

duration latency_histogram::quantile(double fraction) const {
  if (count_ == 0) return duration{0};
  const auto exact = std::ceil(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(count_));
  const auto goal = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(exact));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i + 1 < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= goal) return std::min(max_, duration{static_cast<duration::rep>(upper_end_of(i))});
  }
  return max_;
}

std::vector<latency_histogram::bucket> latency_histogram::buckets() const {
  std::vector<bucket> filled;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) filled.push_back({static_cast<std::uint32_t>(i), counts_[i]});
  }
  return filled;
}

bool latency_histogram::add(const std::vector<bucket>& given, duration max_of_them) {
  const auto out_of_range = [](const bucket& one) { return one.index >= bucket_count; };
  if (max_of_them < duration{0} || std::any_of(given.begin(), given.end(), out_of_range)) return false;
  for (const auto& one : given) {
    counts_[one.index] += one.count;
    count_ += one.count;
  }
  max_ = std::max(max_, max_of_them);
  return true;
}

} // namespace troupe
