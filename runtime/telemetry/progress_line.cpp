#include "runtime/telemetry/progress_line.hpp"

#include <string>

namespace troupe {
namespace {

constexpr duration terminal_interval = std::chrono::milliseconds{100};
constexpr duration plain_interval = std::chrono::seconds{5};
constexpr std::string_view to_line_start = "\r\x1b[K"; // and erase what stands there

} // namespace

progress_line::progress_line(const clock_seam& clock, text_sink& sink, style how)
    : clock_{clock}
    , sink_{sink}
    , style_{how} {}

void progress_line::update(const job_progress& now) {
  if (style_ == style::quiet) return;
  newest_ = now;
  unseen_ = true;
  const auto interval = style_ == style::terminal ? terminal_interval : plain_interval;
  if (!shown_at_ || clock_.now() - *shown_at_ >= interval) show();
}

void progress_line::show() {
  if (style_ == style::terminal) {
    sink_.write(std::string{to_line_start} + tell(newest_));
    on_terminal_ = true;
  } else {
    sink_.write(tell(newest_) + "\n");
  }
  shown_at_ = clock_.now();
  unseen_ = false;
}

void progress_line::milestone(std::string_view text) {
  std::string line{on_terminal_ ? to_line_start : std::string_view{}};
  line += text;
  line += '\n';
  if (on_terminal_) line += tell(newest_);
  sink_.write(line);
}

void progress_line::finish() {
  if (unseen_) show();
  if (on_terminal_) sink_.write("\n");
  on_terminal_ = false;
}

} // namespace troupe
