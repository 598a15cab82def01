// Proof of a hello: that its sender holds the job's path secret, which only the rendezvous gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/ids.hpp"
#include "runtime/seams/path_secret.hpp"

namespace troupe {

using hello_proof = std::array<std::byte, 16>;

// What a hello says. `path` is the number of the path between the two; 0 where there is only one.
struct hello_claim {
  job_id job;
  incarnation_id from, to;
  std::uint64_t path{0};
  std::span<const std::byte> address; // the sender's
};

// HMAC-SHA256 keyed with the secret, over a purpose, job, from, to, path and the address's SHA-256; the first
// 128 bits of it.
[[nodiscard]] hello_proof prove_hello(const path_secret& secret, const hello_claim& claim);
// In constant time.
[[nodiscard]] bool proves(const hello_proof& received, const path_secret& secret, const hello_claim& claim);

} // namespace troupe
