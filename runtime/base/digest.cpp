#include "runtime/base/digest.hpp"

#include <new>

// Compiled here, for this build's processors: the library's own code is for the oldest, and half as fast.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/base/ids.hpp"

namespace troupe {

struct digest_builder::state {
  XXH3_state_t* xxh{XXH3_createState()};
  state() {
    if (xxh == nullptr) throw std::bad_alloc{};
  }
  ~state() { XXH3_freeState(xxh); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
};

digest_builder::digest_builder()
    : state_{std::make_unique<state>()} {
  XXH3_128bits_reset(state_->xxh);
}
digest_builder::~digest_builder() = default;
digest_builder::digest_builder(digest_builder&&) noexcept = default;
digest_builder& digest_builder::operator=(digest_builder&&) noexcept = default;

void digest_builder::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

std::string digest_builder::finish() const {
  const auto hash = XXH3_128bits_digest(state_->xxh);
  return to_hex(hash.high64, hash.low64);
}

std::string digest_of(std::span<const std::byte> bytes) {
  const auto hash = XXH3_128bits(bytes.data(), bytes.size());
  return to_hex(hash.high64, hash.low64);
}

} // namespace troupe
