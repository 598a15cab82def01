// The all-reduce of a job, tried: processes of this program sum known values in shared memory.
//
// Flow:     doctor: prepare -> descriptor -> rank (a process of this program) -> sum, checked -> doctor
// Fails:    a process that does not answer in time is killed; nothing outlives the call.
#pragma once

#include <cstdint>

#include "cli/doctor/doctor_facts.hpp"

namespace troupe::doctor {

// All of `workers` sum once; then each pair, one after the other, many times.
[[nodiscard]] reduce_facts probe_reduce(std::uint32_t workers);
// The process that was started so. Exit code.
[[nodiscard]] int answer_reduce_probe(int fd);

} // namespace troupe::doctor
