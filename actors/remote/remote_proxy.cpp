#include "actors/remote/remote_proxy.hpp"

#include <utility>

#include <caf/actor_addr.hpp>
#include <caf/mailbox_element.hpp>

#include "actors/remote/office_core.hpp"
#include "actors/remote/wire_message.hpp"
#include "actors/system/errors.hpp"
#include "runtime/wire/envelope.hpp"

namespace troupe {

remote_proxy::remote_proxy(caf::actor_config& config, std::weak_ptr<office_core> office, remote_place place)
    : actor_proxy{config}
    , office_{std::move(office)}
    , place_{std::move(place)} {}

void remote_proxy::enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) {
  if (const auto office = office_.lock())
    office->outgoing(*this, *what);
  else
    return_to_sender(*what, {errc::path_lost, "this process has left the job"}, 0);
}

void remote_proxy::kill_proxy(caf::execution_unit* host, caf::error reason) {
  if (std::exchange(dead_, true)) return;
  cause_ = to_troupe(reason);
  cleanup(std::move(reason), host);
}

void remote_proxy::attach(caf::attachable_ptr observer) {
  actor_proxy::attach(std::move(observer));
  if (dead_) return; // the observer has been told
  if (const auto office = office_.lock()) office->open(*this);
}

bool remote_proxy::add_backlink(caf::abstract_actor* other) {
  const bool added = actor_proxy::add_backlink(other);
  if (const auto office = office_.lock(); added && office != nullptr)
    office->link_later(*this, other->address(), true);
  return added;
}

bool remote_proxy::remove_backlink(caf::abstract_actor* other) {
  const bool removed = actor_proxy::remove_backlink(other);
  if (const auto office = office_.lock(); removed && office != nullptr)
    office->link_later(*this, other->address(), false);
  return removed;
}

void remote_proxy::on_destroy() {
  if (const auto office = office_.lock()) office->forget(*this);
  actor_proxy::on_destroy();
}

wire_reason to_wire(const caf::error& reason) {
  if (!reason) return {exit_status::normal, {}};
  if (reason == caf::exit_reason::kill) return {exit_status::killed, {}};
  if (reason == caf::exit_reason::user_shutdown) return {exit_status::shutdown, {}};
  auto cause = to_troupe(reason);
  return {exit_status::of(cause.code), std::move(cause.text)};
}

caf::error from_wire(std::uint16_t status, std::string_view text) {
  if (status == exit_status::normal) return {};
  if (status == exit_status::killed) return caf::exit_reason::kill;
  if (status == exit_status::shutdown) return caf::exit_reason::user_shutdown;
  return to_caf({exit_status::to_errc(status), std::string{text}});
}

void return_to_sender(const caf::mailbox_element& what, const error& cause, std::uint64_t type) {
  if (what.sender == nullptr) return;
  if (what.mid.is_request())
    what.sender->enqueue(nullptr, what.mid.response_id(), caf::make_message(to_caf(cause)), nullptr);
  else if (!what.mid.is_response() && !what.content().match_elements<undelivered>())
    what.sender->enqueue(nullptr, caf::make_message_id(), caf::make_message(undelivered{type, cause}),
                         nullptr);
}

} // namespace troupe
