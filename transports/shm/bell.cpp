#include "transports/shm/bell.hpp"

namespace troupe {

wait_tuning tuning_for(std::uint32_t world, std::uint32_t cores) {
  return {.pauses = world <= cores ? limits::shm_pauses_max : 0, .yields = limits::shm_yields_max};
}

void pause_processor() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void ring(bell_words& bell) noexcept {
  bell.moves.fetch_add(1);
  if (bell.sleepers.load() > 0) futex_wake_all(bell.moves);
}

} // namespace troupe
