// Host identity: who can share memory with whom.
#pragma once

#include <string>

namespace troupe {

// "BOOT/PROCESS NAMESPACE/USER" of this process, at most limits::name_bytes_max printable bytes. Equal for
// two processes that may open each other's memory: one boot of one machine, one PID namespace, one user. So
// two containers of a machine are two hosts. Where the system does not tell, the process is a host by itself.
[[nodiscard]] std::string host_identity();

} // namespace troupe
