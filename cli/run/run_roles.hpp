// The roles of one program; private to this room.
#pragma once

#include <optional>

#include "actors/graph/training_graph.hpp"
#include "cli/options/program_options.hpp"
#include "cli/run/host_environment.hpp"

namespace troupe {

// How long a worker that a director started tries to reach it: it listened before the worker started.
// A successor waits longer than this for the lock on the checkpoint directory, which the worker holds.
inline constexpr duration launched_join_deadline = 5 * detect_after_default;

inline constexpr const char* role_variable = "TROUPE_ROLE";
inline constexpr const char* transport_variable = "TROUPE_TRANSPORT"; // absent: tcp
inline constexpr const char* network_variable = "TROUPE_NETWORK";     // absent: lo
inline constexpr const char* device_variable = "TROUPE_DEVICE";       // absent: no GPU
inline constexpr const char* token_variable = "TROUPE_TOKEN_FD";      // number of an inherited descriptor
// SHA-256 of the director's certificate; absent: no TLS
inline constexpr const char* tls_director_variable = "TROUPE_TLS_DIRECTOR";
// Paths, where the director demands a certificate: its own, which it knows again.
inline constexpr const char* tls_certificate_variable = "TROUPE_TLS_CERT";
inline constexpr const char* tls_key_variable = "TROUPE_TLS_KEY";

[[nodiscard]] command_line parse_command_line(const training_graph& graph, int argc, char** argv);
[[nodiscard]] int run_director(const training_graph& graph, const job_settings& settings);
[[nodiscard]] int run_worker(const training_graph& graph);
[[nodiscard]] int run_joiner(const training_graph& graph, const job_settings& settings);

// The real seams, with UCX on that network device, and what is used of GPUs. errc::bad_argument for a device
// that is not there.
[[nodiscard]] expected<std::unique_ptr<host_environment>>
open_host(const std::string& transport, const std::string& network, const std::optional<gpu_use>& gpu);

// One line on standard error: "PROGRAM: what is wrong"; returns the exit code of the error.
int say_error(const training_graph& graph, const error& cause);

} // namespace troupe
