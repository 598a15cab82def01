#include "runtime/host/instance_guard.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>

#include "runtime/base/invariant.hpp"
#include "runtime/base/units.hpp"
#include "runtime/host/system_error.hpp"

namespace troupe {
namespace {

constexpr duration retry_interval = std::chrono::milliseconds{50};

} // namespace

instance_guard::instance_guard(std::string directory, unique_fd fd)
    : directory_{std::move(directory)}
    , fd_{std::move(fd)} {}

instance_guard::~instance_guard() {
  if (clock_ != nullptr) clock_->cancel(timer_);
}

expected<std::unique_ptr<instance_guard>> instance_guard::open(const std::string& directory) {
  unique_fd fd{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!fd) return file_error("open directory", directory, errno);
  return std::unique_ptr<instance_guard>{new instance_guard{directory, std::move(fd)}};
}

expected<instance_guard::outcome> instance_guard::try_lock() {
  int failed = 0;
  do {
    failed = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed == 0) return outcome::locked;
  if (failed == EWOULDBLOCK) return outcome::held_by_others;
  return file_error("lock", directory_, failed);
}

void instance_guard::lock_within(clock_seam& clock, duration limit,
                                 inline_function<void(expected<void>)> done) {
  invariant(!done_, "instance_guard: one wait for the lock at a time");
  clock_ = &clock;
  started_ = clock.now();
  limit_ = limit;
  done_ = std::move(done);
  retry();
}

void instance_guard::retry() {
  timer_ = 0;
  const auto tried = try_lock();
  const auto left = limit_ - (clock_->now() - started_);
  if (tried && *tried == outcome::held_by_others && left > duration{0}) {
    timer_ = clock_->call_after(std::min(retry_interval, left), [this] { retry(); });
    return;
  }
  auto done = std::move(done_);
  done_ = {};
  if (!tried) return done(tried.failure());
  if (*tried == outcome::locked) return done({});
  done(error{errc::bad_argument,
             "'" + directory_ + "' is in use by another job, or by workers of a job that has died (waited " +
                 format_duration(limit_) + "): end them or choose another directory"});
}

} // namespace troupe
