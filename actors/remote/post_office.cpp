#include "actors/remote/post_office.hpp"

#include <utility>

#include "actors/remote/office_core.hpp"

namespace troupe {

post_office::post_office(actor_runtime& runtime, transport& network, const codec_table& codecs,
                         post_office_settings settings)
    : core_{std::make_shared<office_core>(runtime, network, codecs, settings)}
    , network_{network} {
  network_.set_listener(this);
}

post_office::~post_office() {
  network_.set_listener(nullptr);
  core_->close();
}

expected<void> post_office::publish(std::string_view name, const caf::actor& who) {
  return core_->publish(name, who);
}

void post_office::withdraw(std::string_view name) {
  core_->withdraw(name);
}

caf::actor post_office::remote(incarnation_id peer, std::string_view name) {
  return core_->remote(peer, name);
}

std::uint64_t post_office::credit(const caf::actor& handle) const {
  return core_->credit(handle);
}

void post_office::when_ready(const caf::actor& handle, const caf::actor& who) {
  core_->when_ready(handle, who);
}

void post_office::set_generation(generation_id current) {
  core_->set_generation(current);
}

void post_office::peer_lost(incarnation_id peer, const error& cause) {
  core_->peer_lost(peer, cause);
}

expected<void> post_office::send_control(incarnation_id to, std::uint64_t type,
                                         std::span<const std::byte> body) {
  return core_->send_control(to, type, body);
}

expected<void> post_office::send_owed_control(incarnation_id to, std::uint64_t type,
                                              std::span<const std::byte> body) {
  return core_->send_control(to, type, body, false);
}

void post_office::set_control_handler(control_handler handler) {
  core_->set_control_handler(std::move(handler));
}

void post_office::set_path_lost_handler(path_lost_handler handler) {
  core_->set_path_lost_handler(std::move(handler));
}

void post_office::set_path_interrupted_handler(path_lost_handler handler) {
  interrupted_ = std::move(handler);
}

void post_office::set_bulk_handler(bulk_listener* listener) {
  bulk_ = listener;
}

void post_office::send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                            bulk_done done) {
  network_.send_bulk(peer, transfer, bytes, std::move(done));
}

post_office_counters post_office::counters() const {
  return core_->counters();
}

void post_office::on_message(incarnation_id from, std::span<const std::byte> payload) {
  core_->incoming(from, payload);
}

std::span<std::byte> post_office::on_bulk_announced(incarnation_id from, const bulk_announcement& what) {
  return bulk_ != nullptr ? bulk_->on_bulk_announced(from, what) : std::span<std::byte>{};
}

void post_office::on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) {
  if (bulk_ != nullptr) bulk_->on_bulk_received(from, transfer, std::move(result));
}

void post_office::on_path_lost(incarnation_id from, const error& cause) {
  core_->path_lost(from, cause);
}

void post_office::on_path_interrupted(incarnation_id from, const error& cause) {
  if (interrupted_) interrupted_(from, cause);
}

void post_office::on_undelivered(incarnation_id, std::span<const std::byte> payload, const error& cause) {
  core_->not_delivered(payload, cause);
}

} // namespace troupe
