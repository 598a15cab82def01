// The checks that read the environment which a launcher or a person has set. Private to the doctor.
#pragma once

#include "cli/doctor/doctor_checks.hpp"

namespace troupe::doctor {

[[nodiscard]] finding judge_ucx_environment(const doctor_facts& facts);
[[nodiscard]] finding judge_master_address(const doctor_facts& facts);
[[nodiscard]] finding judge_ranks(const doctor_facts& facts);

// Variables that the checks look at, besides all that start with "UCX_".
[[nodiscard]] bool of_interest(std::string_view variable);

} // namespace troupe::doctor
