// Limits of the rendezvous room, with their units.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/limits.hpp"

namespace troupe::limits {

inline constexpr std::size_t rendezvous_address_bytes_max = 16 * 1024;
// The largest frame: an answer with the job's settings.
inline constexpr std::size_t rendezvous_frame_bytes_max =
    envelope_bytes_max + rendezvous_address_bytes_max + 4096;
inline constexpr std::size_t rendezvous_first_frame_bytes_max = 1024; // before the peer has proved itself
inline constexpr std::size_t rendezvous_offer_bytes_max = rendezvous_address_bytes_max + 4096;
inline constexpr std::int64_t rendezvous_pid_max = std::int64_t{1} << 31;
inline constexpr std::size_t pem_bytes_max = 1024 * 1024; // a file of certificates, or of a key
inline constexpr int tls_chain_bytes_max = 64 * 1024;     // of the certificates that the other side shows
inline constexpr int tls_chain_depth_max = 8;             // certificates between its own and an authority
inline constexpr std::size_t token_bytes_min = 16;
inline constexpr std::size_t token_bytes_max = 1024;

} // namespace troupe::limits
