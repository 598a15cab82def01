#include "transports/ucx/ucx_transport.hpp"

#include "transports/ucx/engine.hpp"

namespace troupe {

expected<std::unique_ptr<ucx_transport>> ucx_transport::open(boost::asio::io_context& loop, clock_seam& clock,
                                                             incarnation_id self, ucx_settings settings) {
  auto worker = ucx_worker::open(settings);
  if (!worker) return worker.failure();
  auto engine =
      std::make_shared<ucx_engine>(loop, clock, self, std::move(settings), std::move(worker.value()));
  engine->schedule();
  return std::unique_ptr<ucx_transport>{new ucx_transport{std::move(engine)}};
}

ucx_transport::ucx_transport(std::shared_ptr<ucx_engine> engine)
    : engine_{std::move(engine)} {}

ucx_transport::~ucx_transport() {
  engine_->stop();
}

void ucx_transport::set_job(job_id job, const path_secret& secret) {
  engine_->set_job(job, secret);
}
void ucx_transport::set_listener(transport_listener* listener) {
  engine_->set_listener(listener);
}
peer_address ucx_transport::local_address() const {
  return engine_->local_address();
}
incarnation_id ucx_transport::self() const {
  return engine_->self();
}
expected<void> ucx_transport::connect(incarnation_id peer, const peer_address& address) {
  return engine_->connect(peer, address);
}
expected<void> ucx_transport::send(incarnation_id peer, std::span<const std::byte> payload) {
  return engine_->send(peer, payload);
}
void ucx_transport::send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                              bulk_done done) {
  engine_->send_bulk(peer, transfer, bytes, std::move(done));
}
void ucx_transport::close(incarnation_id peer) {
  engine_->close(peer);
}
void ucx_transport::drop(incarnation_id peer) {
  engine_->drop(peer);
}
bool ucx_transport::look() {
  return engine_->look();
}

const ucx_counters& ucx_transport::counters() const {
  return engine_->counters();
}
std::string ucx_transport::lanes(incarnation_id peer) const {
  return engine_->lanes(peer);
}
bool ucx_transport::idle() const {
  return engine_->idle();
}

} // namespace troupe
