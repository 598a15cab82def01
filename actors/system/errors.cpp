#include "actors/system/errors.hpp"

#include <caf/atom.hpp>
#include <caf/error.hpp>
#include <caf/exit_reason.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

#include "runtime/base/limits.hpp"

namespace troupe {
namespace {

constexpr auto our_category = caf::atom("troupe");
constexpr auto exit_category = caf::atom("exit");
constexpr auto system_category = caf::atom("system");

error from_exit(caf::exit_reason reason) {
  const auto text = "actor ended: " + caf::to_string(reason);
  switch (reason) {
  case caf::exit_reason::remote_link_unreachable:
    return {errc::path_lost, text};
  case caf::exit_reason::unhandled_exception:
  case caf::exit_reason::out_of_workers:
    return {errc::actor_failed, text};
  default:
    return {errc::actor_stopped, text};
  }
}

error from_system(const caf::error& reason) {
  const auto text = "actor system: " + caf::to_string(reason);
  switch (static_cast<caf::sec>(reason.code())) {
  case caf::sec::request_timeout:
    return {errc::timed_out, "no answer in time"};
  case caf::sec::request_receiver_down:
    return {errc::actor_stopped, "the actor asked is gone"};
  case caf::sec::invalid_argument:
  case caf::sec::unexpected_message:
    return {errc::bad_argument, text};
  default:
    return {errc::actor_failed, text};
  }
}

} // namespace

caf::error to_caf(const error& cause) {
  // CAF reads code 0 as "no error".
  const auto code = static_cast<std::uint8_t>(static_cast<unsigned>(cause.code) + 1);
  return {code, our_category, caf::make_message(cause.text.substr(0, limits::error_text_bytes_max))};
}

error to_troupe(const caf::error& reason) {
  if (!reason) return {errc::actor_stopped, "actor ended normally"};
  if (reason.category() == our_category) {
    const auto& context = reason.context();
    error result{static_cast<errc>(reason.code() - 1), {}};
    if (context.match_elements<std::string>()) result.text = context.get_as<std::string>(0);
    return result;
  }
  if (reason.category() == exit_category) return from_exit(static_cast<caf::exit_reason>(reason.code()));
  if (reason.category() == system_category) return from_system(reason);
  return {errc::actor_failed, "actor failed: " + caf::to_string(reason)};
}

error error_of(const std::exception_ptr& thrown, std::string_view who) {
  try {
    std::rethrow_exception(thrown);
  } catch (const actor_error& failure) {
    return failure.cause().at(who);
  } catch (const std::exception& failure) {
    return error{errc::actor_failed, failure.what()}.at(who);
  } catch (...) {
    return error{errc::actor_failed, "an exception that is no std::exception"}.at(who);
  }
}

bool is_orderly_exit(const caf::error& reason) {
  if (!reason) return true;
  return reason.category() == exit_category &&
         static_cast<caf::exit_reason>(reason.code()) == caf::exit_reason::user_shutdown;
}

} // namespace troupe
