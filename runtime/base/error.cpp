#include "runtime/base/error.hpp"

namespace troupe {

std::string_view to_string(errc code) {
  switch (code) {
  case errc::bad_argument:
    return "bad_argument";
  case errc::bad_data:
    return "bad_data";
  case errc::corrupt:
    return "corrupt";
  case errc::wrong_program:
    return "wrong_program";
  case errc::wrong_version:
    return "wrong_version";
  case errc::not_found:
    return "not_found";
  case errc::storage_failed:
    return "storage_failed";
  case errc::storage_full:
    return "storage_full";
  case errc::refused:
    return "refused";
  case errc::path_lost:
    return "path_lost";
  case errc::timed_out:
    return "timed_out";
  case errc::aborted:
    return "aborted";
  case errc::stale_generation:
    return "stale_generation";
  case errc::too_large:
    return "too_large";
  case errc::no_credit:
    return "no_credit";
  case errc::actor_failed:
    return "actor_failed";
  case errc::actor_stopped:
    return "actor_stopped";
  case errc::never_existed:
    return "never_existed";
  case errc::process_died:
    return "process_died";
  case errc::budget_spent:
    return "budget_spent";
  case errc::too_few_workers:
    return "too_few_workers";
  case errc::device_failed:
    return "device_failed";
  case errc::out_of_memory:
    return "out_of_memory";
  case errc::internal:
    return "internal";
  }
  return "unknown";
}

reaction reaction_of(errc code) {
  switch (code) {
  case errc::path_lost:
  case errc::timed_out:
  case errc::no_credit:
    return reaction::retry;
  case errc::aborted:
  case errc::stale_generation:
    return reaction::rebuild;
  case errc::storage_failed:
  case errc::storage_full:
  case errc::actor_failed:
  case errc::actor_stopped:
  case errc::process_died:
  case errc::device_failed:
  case errc::out_of_memory:
    return reaction::restart;
  default:
    return reaction::stop;
  }
}

int exit_code_of(errc code) {
  switch (code) {
  case errc::bad_argument:
  case errc::wrong_program:
  case errc::wrong_version:
  case errc::timed_out: // nobody answers where we were told to ask
  case errc::storage_failed:
  case errc::storage_full:
    return 2;
  case errc::budget_spent:
    return 3;
  case errc::too_few_workers:
    return 4;
  case errc::bad_data:
    return 5;
  case errc::corrupt:
  case errc::not_found:
    return 6;
  case errc::refused:
    return 7;
  default:
    return 70;
  }
}

} // namespace troupe
