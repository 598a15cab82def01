// Errors that a caller can react to, as values.
//
// An `error` carries a code (what happened), and a text that names the thing, the value and the remedy.
// A code exists only if some caller reacts to it; `reaction_of` is that reaction, in one place.
// The root cause travels first: `error::at(hop)` appends a hop and never re-parses the text.
// Bugs are not errors: see invariant.hpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "runtime/base/invariant.hpp"

namespace troupe {

enum class errc : unsigned char {
  bad_argument,     // a setting, option or call that can never work
  bad_data,         // a dataset that is missing, truncated or out of range
  corrupt,          // stored or received bytes whose digest or form is wrong
  wrong_program,    // a checkpoint written by another program or layout
  wrong_version,    // a newer schema or protocol than this build reads
  not_found,        // no such file, version, actor
  storage_failed,   // an I/O error that is not "full"
  storage_full,     // no space left
  refused,          // authentication or admission refused
  path_lost,        // the connection to a peer failed: suspicion, never a verdict
  timed_out,        // a deadline passed
  aborted,          // the operation was ended from outside (a generation ended)
  stale_generation, // addressed to a generation that has ended
  too_large,        // exceeds a limit in limits.hpp
  no_credit,        // the receiver granted no room
  actor_failed,     // the actor that should answer failed
  actor_stopped,    // the actor that should answer has stopped
  never_existed,    // no such actor was ever there
  process_died,     // a worker process ended
  budget_spent,     // restart intensity exceeded
  too_few_workers,  // fewer members than workers_min for longer than allowed
  device_failed,    // the compute device reported an error
  out_of_memory,    // an allocation failed
  internal,         // a broken promise of ours, reported instead of asserted where a peer may be at fault
};

enum class reaction : unsigned char { retry, rebuild, restart, stop };

[[nodiscard]] std::string_view to_string(errc code);
[[nodiscard]] reaction reaction_of(errc code);
// Exit code of a program that ends with this error (CONTRACT: exit codes).
[[nodiscard]] int exit_code_of(errc code);

struct error {
  errc code{errc::internal};
  std::string text;

  [[nodiscard]] error at(std::string_view hop) const { return {code, text + " [" + std::string{hop} + "]"}; }
};

// Value or error. Small on purpose: C++23's std::expected replaces it when the compiler has one.
template <class T>
class [[nodiscard]] expected {
public:
  expected(T value)
      : state_{std::in_place_index<0>, std::move(value)} {}
  expected(error failure)
      : state_{std::in_place_index<1>, std::move(failure)} {}

  [[nodiscard]] bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] T& value() { return require(), std::get<0>(state_); }
  [[nodiscard]] const T& value() const { return require(), std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] const troupe::error& failure() const { return std::get<1>(state_); }

private:
  void require() const { invariant(has_value(), "expected: value() is called only where there is a value"); }
  std::variant<T, troupe::error> state_;
};

template <>
class [[nodiscard]] expected<void> {
public:
  expected() = default;
  expected(error failure)
      : failure_{std::move(failure)} {}

  [[nodiscard]] bool has_value() const { return !failure_.has_value(); }
  explicit operator bool() const { return has_value(); }
  [[nodiscard]] const troupe::error& failure() const { return *failure_; }

private:
  std::optional<troupe::error> failure_;
};

} // namespace troupe
