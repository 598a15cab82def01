#include "bench/message/ucx_path.hpp"

#include <sys/epoll.h>

#include "transports/ucx/lanes.hpp"

namespace troupe::bench {

ucs_status_t raw_path::open_context(const program_options& options) {
  const auto settings = settings_for(options.lane);
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) return status;
  auto status = ucp_config_modify(config, "TLS", settings.transports.c_str());
  if (status == UCS_OK) status = ucp_config_modify(config, "NET_DEVICES", settings.devices.c_str());
  for (const auto& [name, value] : settings.options)
    if (status == UCS_OK) status = ucp_config_modify(config, name.c_str(), value.c_str());
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    if (sleeps_) params.features |= UCP_FEATURE_WAKEUP;
    status = ucp_init(&params, config, &context_);
  }
  ucp_config_release(config);
  return status;
}

ucs_status_t raw_path::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  if (const auto status = ucp_worker_create(context_, &params, &worker_); status != UCS_OK) return status;
  handle(raw_kind::ping, &raw_path::on_message<raw_kind::ping>);
  handle(raw_kind::piece, &raw_path::on_message<raw_kind::piece>);
  handle(raw_kind::bulk, &raw_path::on_message<raw_kind::bulk>);
  handle(raw_kind::done, &raw_path::on_message<raw_kind::done>);
  if (!sleeps_) return UCS_OK;
  int fd = -1;
  if (const auto status = ucp_worker_get_efd(worker_, &fd); status != UCS_OK) return status;
  epoll_ = unique_fd{::epoll_create1(EPOLL_CLOEXEC)};
  epoll_event watched{.events = EPOLLIN, .data = {}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &watched) == 0 ? UCS_OK : UCS_ERR_IO_ERROR;
}

expected<std::unique_ptr<raw_path>> raw_path::open(const program_options& options) {
  std::unique_ptr<raw_path> made{new raw_path{options.wake == "sleep"}};
  for (auto& room : made->rooms_)
    room.resize(bulk_bytes);
  auto status = made->open_context(options);
  if (status == UCS_OK) status = made->open_worker();
  if (status == UCS_OK) return made;
  return error{errc::bad_argument, std::string{"UCX cannot start: "} + ucs_status_string(status)};
}

raw_path::~raw_path() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_); // its endpoint with it
  if (context_ != nullptr) ucp_cleanup(context_);
}

void raw_path::handle(raw_kind kind, ucp_am_recv_callback_t callback) {
  ucp_am_handler_param_t params{};
  params.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = static_cast<unsigned>(kind);
  params.cb = callback;
  params.arg = this;
  ucp_worker_set_am_recv_handler(worker_, &params);
}

std::string raw_path::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (ucp_worker_get_address(worker_, &address, &bytes) != UCS_OK) return {};
  std::string copy{reinterpret_cast<const char*>(address), bytes};
  ucp_worker_release_address(worker_, address);
  return copy;
}

expected<void> raw_path::connect(const std::string& address) {
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &raw_path::on_error;
  params.err_handler.arg = this;
  failed_ = ucp_ep_create(worker_, &params, &endpoint_);
  if (failed_ != UCS_OK) return failure();
  return {};
}

void raw_path::send(raw_kind kind, std::span<const std::byte> bytes) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &raw_path::on_sent;
  params.user_data = this;
  auto* request = ucp_am_send_nbx(endpoint_, static_cast<unsigned>(kind), nullptr, 0, bytes.data(),
                                  bytes.size(), &params);
  if (UCS_PTR_IS_ERR(request))
    failed_ = UCS_PTR_STATUS(request);
  else if (request != nullptr)
    ++sending_;
}

void raw_path::sleep() {
  if (ucp_worker_arm(worker_) != UCS_OK) return; // busy: there is something to progress
  epoll_event ready{};
  (void)::epoll_wait(epoll_.get(), &ready, 1, -1);
}

error raw_path::failure() const {
  return {errc::path_lost, std::string{"the path failed: "} + ucs_status_string(failed_)};
}

template <raw_kind Kind>
ucs_status_t raw_path::on_message(void* path, const void*, std::size_t, void* data, std::size_t bytes,
                                  const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<raw_path*>(path);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return self.receive_bulk(data, bytes);
  ++self.arrived_.count[static_cast<unsigned>(Kind)];
  if constexpr (Kind == raw_kind::piece) {
    self.arrived_.newest_piece = bench_clock::now();
    if (self.arrived_.of(Kind) == 1) self.arrived_.first_piece = self.arrived_.newest_piece;
  }
  return UCS_OK;
}

ucs_status_t raw_path::receive_bulk(void* descriptor, std::size_t bytes) {
  if (bytes > bulk_bytes) return UCS_ERR_UNSUPPORTED;
  auto& room = rooms_[next_room_++ % rooms_.size()];
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.recv_am = &raw_path::on_bulk;
  params.user_data = this;
  auto* request = ucp_am_recv_data_nbx(worker_, descriptor, room.data(), bytes, &params);
  if (UCS_PTR_IS_ERR(request)) {
    failed_ = UCS_PTR_STATUS(request);
    return failed_;
  }
  if (request == nullptr) ++arrived_.count[static_cast<unsigned>(raw_kind::bulk)];
  return UCS_INPROGRESS;
}

void raw_path::on_bulk(void* request, ucs_status_t status, std::size_t, void* path) {
  auto& self = *static_cast<raw_path*>(path);
  if (status != UCS_OK) self.failed_ = status;
  ++self.arrived_.count[static_cast<unsigned>(raw_kind::bulk)];
  ucp_request_free(request);
}

void raw_path::on_sent(void* request, ucs_status_t status, void* path) {
  auto& self = *static_cast<raw_path*>(path);
  if (status != UCS_OK) self.failed_ = status;
  --self.sending_;
  ucp_request_free(request);
}

void raw_path::on_error(void* path, ucp_ep_h, ucs_status_t status) {
  static_cast<raw_path*>(path)->failed_ = status;
}

} // namespace troupe::bench
