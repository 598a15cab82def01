#include "runtime/policy/failure.hpp"

#include <algorithm>
#include <array>
#include <csignal>

namespace troupe {
namespace {

struct kind_row {
  failure_kind kind;
  std::string_view name;
  failure_class what;
};

constexpr std::array<kind_row, failure_kinds> kinds{{
    {failure_kind::kill, "kill", failure_class::process_death},
    {failure_kind::segv, "segv", failure_class::process_death},
    {failure_kind::abort, "abort", failure_class::process_death},
    {failure_kind::signal, "signal", failure_class::process_death},
    {failure_kind::exit, "exit", failure_class::process_death},
    {failure_kind::oom, "oom", failure_class::process_death},
    {failure_kind::thrown, "throw", failure_class::actor_error},
    {failure_kind::stop, "stop", failure_class::silent_process},
    {failure_kind::hang, "hang", failure_class::hang},
    {failure_kind::collective_hang, "collective-hang", failure_class::hang},
    {failure_kind::straggler, "straggler", failure_class::straggler},
    {failure_kind::path_lost, "path-lost", failure_class::lost_path},
    {failure_kind::device, "device", failure_class::device_error},
    {failure_kind::bad_data, "bad-data", failure_class::bad_data},
    {failure_kind::nan, "nan", failure_class::bad_data},
    {failure_kind::storage, "storage", failure_class::storage},
}};

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (static_cast<std::size_t>(kinds[i].kind) != i) return false;
  }
  return true;
}
static_assert(rows_in_order());

const kind_row& row_of(failure_kind kind) {
  const auto index = static_cast<std::size_t>(kind);
  invariant(index < kinds.size(), "FA-1 every kind has one name and one class");
  return kinds[index];
}

failure_kind kind_of_signal(int number, bool out_of_memory) {
  switch (number) {
  case SIGKILL:
    return out_of_memory ? failure_kind::oom : failure_kind::kill;
  case SIGSEGV:
  case SIGBUS:
  case SIGILL:
  case SIGFPE:
    return failure_kind::segv;
  case SIGABRT:
    return failure_kind::abort;
  default:
    return failure_kind::signal;
  }
}

// Causes of these kinds are the program's own words; those of the others hold durations and the like.
bool cause_identifies(failure_kind kind) {
  return kind == failure_kind::thrown || kind == failure_kind::exit || kind == failure_kind::abort ||
         kind == failure_kind::device || kind == failure_kind::bad_data;
}

} // namespace

std::string_view to_string(failure_kind kind) {
  return row_of(kind).name;
}

std::optional<failure_kind> failure_kind_of(std::string_view name) {
  const auto row = std::ranges::find(kinds, name, &kind_row::name);
  if (row == kinds.end()) return std::nullopt;
  return row->kind;
}

failure_kind failure_kind_of(errc code) {
  switch (code) {
  case errc::out_of_memory:
    return failure_kind::oom;
  case errc::device_failed:
    return failure_kind::device;
  case errc::bad_data:
  case errc::corrupt:
    return failure_kind::bad_data;
  default:
    return failure_kind::thrown;
  }
}

failure_class class_of(failure_kind kind) {
  return row_of(kind).what;
}

std::string_view to_string(failure_class what) {
  switch (what) {
  case failure_class::actor_error:
    return "actor_error";
  case failure_class::process_death:
    return "process_death";
  case failure_class::silent_process:
    return "silent_process";
  case failure_class::device_error:
    return "device_error";
  case failure_class::lost_path:
    return "lost_path";
  case failure_class::hang:
    return "hang";
  case failure_class::straggler:
    return "straggler";
  case failure_class::bad_data:
    return "bad_data";
  case failure_class::storage:
    return "storage";
  }
  return "unknown";
}

std::string_view to_string(failure_reaction what) {
  switch (what) {
  case failure_reaction::restart_actor:
    return "restart_actor";
  case failure_reaction::replace_process:
    return "replace_process";
  case failure_reaction::kill_and_replace:
    return "kill_and_replace";
  case failure_reaction::confirm:
    return "confirm";
  case failure_reaction::report:
    return "report";
  case failure_reaction::stop_job:
    return "stop_job";
  case failure_reaction::retry_later:
    return "retry_later";
  }
  return "unknown";
}

failure_reaction reaction_of(failure_class what) {
  switch (what) {
  case failure_class::actor_error:
    return failure_reaction::restart_actor;
  case failure_class::process_death:
  case failure_class::device_error: // its context cannot be trusted any more, sticky or not
    return failure_reaction::replace_process;
  case failure_class::silent_process:
  case failure_class::hang:
    return failure_reaction::kill_and_replace;
  case failure_class::lost_path:
    return failure_reaction::confirm;
  case failure_class::straggler:
    return failure_reaction::report;
  case failure_class::bad_data:
    return failure_reaction::stop_job;
  case failure_class::storage:
    return failure_reaction::retry_later;
  }
  invariant_broken("FA-1 every class has one reaction");
}

std::string failure::text() const {
  return "rank " + to_string(rank) + (pid != 0 ? " (pid " + std::to_string(pid) + ")" : "") + ", step " +
         to_string(step) + ": " + std::string{to_string(kind)} + ": " + cause;
}

std::optional<duration> failure::detected_in() const {
  if (!fault_at) return std::nullopt;
  return std::max(duration::zero(), detected_at - *fault_at);
}

failure failure_of_exit(const process_exit& exit, const exit_evidence& evidence) {
  failure result;
  result.pid = exit.pid;
  const std::string ending = exit.text();
  if (evidence.condemned) { // FA-2
    result.kind = *evidence.condemned;
    result.cause = evidence.condemned_text.empty() ? ending : evidence.condemned_text;
    return result;
  }
  result.kind = evidence.told    ? *evidence.told
                : exit.signalled ? kind_of_signal(exit.code, evidence.out_of_memory)
                                 : failure_kind::exit;
  result.cause = evidence.cause.empty() ? ending : evidence.cause + " [" + ending + "]";
  if (result.kind == failure_kind::oom) result.cause += ", probably for want of memory";
  return result;
}

bool same_failure(const failure& a, const failure& b) {
  return a.rank == b.rank && a.step == b.step && a.kind == b.kind &&
         (!cause_identifies(a.kind) || a.cause == b.cause);
}

} // namespace troupe
