// 128-bit content digests (XXH3), as 32 hex digits. They find corruption, not forgery.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace troupe {

[[nodiscard]] std::string digest_of(std::span<const std::byte> bytes);

// Incremental form: the same digest as one call over the concatenation.
class digest_builder {
public:
  digest_builder();
  ~digest_builder();
  digest_builder(digest_builder&&) noexcept;
  digest_builder& operator=(digest_builder&&) noexcept;
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::string finish() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

} // namespace troupe
