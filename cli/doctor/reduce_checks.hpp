// The check of the all-reduce that was tried. Private to the doctor.
#pragma once

#include <cstdint>

#include "cli/doctor/doctor_checks.hpp"

namespace troupe::doctor {

inline constexpr std::uint32_t reduce_workers_max = 8; // 28 pairs
inline constexpr double pair_bytes_per_s_usual = 500e6;

[[nodiscard]] finding judge_reduce(const doctor_facts& facts);

} // namespace troupe::doctor
