// Secrets for child processes: handed over as a descriptor of sealed anonymous memory, never on a command
// line or in an environment variable, which other users of the machine can read.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe {

inline constexpr std::size_t secret_bytes_max = 4096;

// Name the descriptor in process_spec::inherited_fds, and its number in the child's environment.
[[nodiscard]] expected<unique_fd> make_secret_fd(std::string_view secret);
// Reads from the start, whoever has read before; closes `fd`. errc::bad_argument: not such a descriptor.
[[nodiscard]] expected<std::string> read_secret_fd(int fd);

} // namespace troupe
