// Strong ids: numbers that cannot be mixed up.
//
// `generation_id`  the membership's number; moved only by the director; 0 means "none yet".
// `rank_id`        a worker's place in the current generation, 0 .. world-1.
// `step_id`        number of optimizer steps applied: the state at step k is the result of k updates.
// `job_id`, `incarnation_id`  random 128 bits: one per job, one per process start.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

template <class Tag, class Rep>
class strong_number {
public:
  using rep = Rep;
  constexpr strong_number() = default;
  constexpr explicit strong_number(Rep value)
      : value_{value} {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  [[nodiscard]] constexpr strong_number next() const { return strong_number{static_cast<Rep>(value_ + 1)}; }
  constexpr auto operator<=>(const strong_number&) const = default;

private:
  Rep value_{};
};

using generation_id = strong_number<struct generation_tag, std::uint64_t>;
using rank_id = strong_number<struct rank_tag, std::uint32_t>;
using step_id = strong_number<struct step_tag, std::uint64_t>;

template <class Tag>
class random_id {
public:
  constexpr random_id() = default;
  constexpr random_id(std::uint64_t high, std::uint64_t low)
      : high_{high}
      , low_{low} {}
  [[nodiscard]] constexpr std::uint64_t high() const { return high_; }
  [[nodiscard]] constexpr std::uint64_t low() const { return low_; }
  [[nodiscard]] constexpr bool valid() const { return high_ != 0 || low_ != 0; }
  constexpr auto operator<=>(const random_id&) const = default;

private:
  std::uint64_t high_{};
  std::uint64_t low_{};
};

using job_id = random_id<struct job_tag>;
using incarnation_id = random_id<struct incarnation_tag>;

[[nodiscard]] std::string to_hex(std::uint64_t high, std::uint64_t low);
template <class Tag>
[[nodiscard]] std::string to_string(const random_id<Tag>& id) {
  return to_hex(id.high(), id.low());
}
template <class Tag, class Rep>
[[nodiscard]] std::string to_string(const strong_number<Tag, Rep>& number) {
  return std::to_string(number.value());
}

} // namespace troupe

template <class Tag, class Rep>
struct std::hash<troupe::strong_number<Tag, Rep>> {
  std::size_t operator()(const troupe::strong_number<Tag, Rep>& n) const noexcept {
    return std::hash<Rep>{}(n.value());
  }
};
template <class Tag>
struct std::hash<troupe::random_id<Tag>> {
  std::size_t operator()(const troupe::random_id<Tag>& id) const noexcept {
    return static_cast<std::size_t>(id.high() ^ (id.low() * 0x9e3779b97f4a7c15ULL));
  }
};
