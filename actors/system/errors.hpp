// Errors of actors: troupe::error <-> caf::error, so that the root cause reaches every supervisor.
//
// CAF keeps only a code of an unhandled exception. Actors here throw `actor_error` (or anything else), and
// the runtime's exception handler carries code and text into the exit reason that monitors and links see.
// Invariants:
//   AE-1    to_troupe(to_caf(e)) is e: code and text survive.
//   AE-2    an exit without an error (a normal end) is no error: `to_troupe` of it says actor_stopped.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/error.hpp"

namespace caf {
class error;
}

namespace troupe {

// Thrown in an actor to fail it with this error.
class actor_error final : public std::exception {
public:
  explicit actor_error(error cause)
      : cause_{std::move(cause)} {}
  actor_error(errc code, std::string text)
      : cause_{code, std::move(text)} {}
  [[nodiscard]] const error& cause() const { return cause_; }
  [[nodiscard]] const char* what() const noexcept override { return cause_.text.c_str(); }

private:
  error cause_;
};

[[nodiscard]] caf::error to_caf(const error& cause);
// Understands our own errors (AE-1) and CAF's: exit reasons become actor_stopped or path_lost, a request
// time-out timed_out, everything else actor_failed with CAF's own text.
[[nodiscard]] error to_troupe(const caf::error& reason);
// What a caught exception means; `who` is appended as a hop.
[[nodiscard]] error error_of(const std::exception_ptr& thrown, std::string_view who);

// True for the exits that a supervisor does not count as failures: normal, and a shutdown that was asked for.
[[nodiscard]] bool is_orderly_exit(const caf::error& reason);

} // namespace troupe
