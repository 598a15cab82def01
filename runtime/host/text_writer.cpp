#include "runtime/host/text_writer.hpp"

#include <cerrno>
#include <condition_variable>
#include <mutex>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/host/system_error.hpp"
#include "runtime/host/thread_executor.hpp"

namespace troupe {

// `filling`, `accepted`, `written`, `dropped` and `scheduled` are guarded by `mutex`; `draining` and
// `file_bytes` belong to the writer's thread. Counts are of pieces.
struct text_writer::state {
  explicit state(unique_fd descriptor)
      : fd{std::move(descriptor)} {
    filling.reserve(buffered_bytes_max);
    draining.reserve(buffered_bytes_max);
    struct stat status {};
    regular = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  }

  void drain() {
    std::unique_lock lock{mutex};
    filling.swap(draining);
    const auto pieces = std::exchange(filling_pieces, 0);
    scheduled = false;
    lock.unlock();
    const bool whole = write_all();
    draining.clear();
    lock.lock();
    written += pieces;
    dropped += whole ? 0 : pieces;
    lock.unlock();
    progressed.notify_all();
  }

  // A regular file that takes only a part is cut back, so that it holds whole pieces (TW-1).
  bool write_all() {
    std::size_t done = 0;
    while (done < draining.size()) {
      const auto got = ::write(fd.get(), draining.data() + done, draining.size() - done);
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else if (errno == EAGAIN) { // someone made the terminal non-blocking
        pollfd writable{fd.get(), POLLOUT, 0};
        (void)::poll(&writable, 1, -1);
      } else if (errno != EINTR) {
        if (regular) (void)!::ftruncate(fd.get(), file_bytes);
        return false;
      }
    }
    file_bytes += static_cast<off_t>(done);
    return true;
  }

  unique_fd fd;
  bool regular{false};
  off_t file_bytes{0};
  std::mutex mutex;
  std::condition_variable progressed;
  std::string filling;
  std::string draining;
  std::uint64_t filling_pieces{0};
  std::uint64_t accepted{0};
  std::uint64_t written{0};
  std::uint64_t dropped{0};
  bool scheduled{false};
  thread_executor thread{"troupe-text", thread_executor::urgency::background};
};

expected<std::unique_ptr<text_writer>> text_writer::to_file(const std::string& path) {
  unique_fd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666)};
  if (!fd) return error{errc::bad_argument, file_error("write", path, errno).text};
  return std::make_unique<text_writer>(std::move(fd));
}

std::unique_ptr<text_writer> text_writer::to_standard_error() {
  return std::make_unique<text_writer>(unique_fd{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)});
}

text_writer::text_writer(unique_fd fd)
    : state_{std::make_unique<state>(std::move(fd))} {}

text_writer::~text_writer() {
  state_->thread.finish();
}

void text_writer::write(std::string_view text) {
  const std::lock_guard lock{state_->mutex};
  if (state_->filling.size() + text.size() > buffered_bytes_max) {
    ++state_->dropped;
    return;
  }
  state_->filling += text;
  ++state_->filling_pieces;
  ++state_->accepted;
  if (std::exchange(state_->scheduled, true)) return;
  state_->thread.post([work = state_.get()] { work->drain(); });
}

void text_writer::flush() {
  std::unique_lock lock{state_->mutex};
  const auto goal = state_->accepted;
  state_->progressed.wait(lock, [&] { return state_->written >= goal; });
}

std::uint64_t text_writer::dropped() const {
  const std::lock_guard lock{state_->mutex};
  return state_->dropped;
}

bool standard_error_is_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

} // namespace troupe
