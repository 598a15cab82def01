// Doctor probe: finds out about this machine. Looks, measures, changes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "cli/doctor/doctor_facts.hpp"
#include "runtime/base/error.hpp"

namespace troupe::doctor {

struct probe_settings {
  std::string transport{"tcp"}; // as --transport takes it
  std::uint32_t workers{2};     // that try an all-reduce
  std::string data;             // the folder of the main example's dataset
  std::string device;           // cpu, or the cuda:N that is asked for
};

// `path` and `path_failure` as two processes of this program find them; all other facts at once.
[[nodiscard]] doctor_facts probe_machine(const probe_settings& settings);

// The libraries, as their headers and they themselves say (library_versions.cpp).
[[nodiscard]] std::vector<library_facts> library_versions();

// Starts this program again (`doctor --transport T --peer FD`), exchanges messages with it, ends it.
[[nodiscard]] expected<path_facts> probe_path(const std::string& transport);
// The process that was started so. Exit code.
[[nodiscard]] int answer_path_probe(const std::string& transport, int fd);

} // namespace troupe::doctor
