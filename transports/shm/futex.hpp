// Sleeping on a word of shared memory, between processes.
//
// Source: futex(2); the words are shared (no FUTEX_PRIVATE_FLAG), keyed by the memory object behind them.
#pragma once

#include <atomic>
#include <cstdint>

namespace troupe {

// Sleeps while `word` holds `seen`, at most `timeout_ms`. May return early; the caller looks again.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t timeout_ms) noexcept;
void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept;

} // namespace troupe
