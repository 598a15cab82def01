// IDX stream: the bytes of a file, gunzipped where it is gzip, read in order through the storage seam.
//
// Owns:     one input buffer of `limits::idx_read_bytes`, and the inflate state.
// Runs on:  the storage thread, or a start before the event loop: it blocks.
// Fails:    `errc::bad_data`, one line: the file, what was found, what is accepted.
// Invariants:
//   IS-1    every byte of the file is accounted for: too few and too many are both errors.
//   IS-2    gzip checksums are verified before `expect_end` succeeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

class idx_stream {
public:
  // `files` outlives the stream.
  [[nodiscard]] static expected<idx_stream> open(storage& files, const std::string& path);
  ~idx_stream();
  idx_stream(idx_stream&&) noexcept;
  idx_stream& operator=(idx_stream&&) noexcept;

  // Fills `into` whole; `what` names it in the error ("pixels").
  [[nodiscard]] expected<void> read(std::span<std::byte> into, std::string_view what);
  // After the last byte: nothing more may follow.
  [[nodiscard]] expected<void> expect_end(std::string_view after);
  // No file of this size can hold more than this many bytes of content: a promise beyond it is a lie.
  [[nodiscard]] std::uint64_t content_bytes_max() const;
  [[nodiscard]] error bad(const std::string& text) const; // names the file

private:
  struct state;
  explicit idx_stream(std::unique_ptr<state> opened);
  [[nodiscard]] expected<std::size_t> read_some(std::span<std::byte> into);
  std::unique_ptr<state> state_;
};

} // namespace troupe
