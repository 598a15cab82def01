// Text writer: hands text to a file or a terminal without ever blocking its caller.
//
// Flow:     event log, progress line -> write -> [bounded buffer] -> its own thread -> file
// Owns:     two buffers of `buffered_bytes_max` (no allocation after construction), a thread. Its own thread
//           and not the storage thread: an event must not wait for a checkpoint to be written.
// Runs on:  `write` from any thread, a short lock; `flush` blocks and is for a `main`.
// Fails:    what does not fit, or cannot be written, is dropped whole and counted.
// Invariants:
//   TW-1    a piece is written whole and in order, or not at all (a file that is full keeps whole pieces).
//   TW-2    destruction writes what was accepted.
//   TW-3    `write` never waits for the file.
// Why:      docs/design/0011-events-writer.md
#pragma once

#include <memory>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/host/unique_fd.hpp"
#include "runtime/telemetry/text_sink.hpp"

namespace troupe {

class text_writer final : public text_sink {
public:
  static constexpr std::size_t buffered_bytes_max = 256 * 1024;

  // Creates or empties the file. errc::bad_argument names the path and the system's words.
  [[nodiscard]] static expected<std::unique_ptr<text_writer>> to_file(const std::string& path);
  [[nodiscard]] static std::unique_ptr<text_writer> to_standard_error();

  explicit text_writer(unique_fd fd);
  ~text_writer() override;
  text_writer(const text_writer&) = delete;
  text_writer& operator=(const text_writer&) = delete;

  void write(std::string_view text) override;
  void flush(); // returns when everything written before is with the system
  [[nodiscard]] std::uint64_t dropped() const;

private:
  struct state;
  std::unique_ptr<state> state_;
};

[[nodiscard]] bool standard_error_is_terminal();

} // namespace troupe
