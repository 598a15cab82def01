#include "transports/ucx/ucx_worker.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <unistd.h>

#include "transports/ucx/event_order.hpp"

namespace troupe {
namespace {

constexpr std::size_t message_alignment = 64;

// - Segments that a piece of bulk fills: copied into them it is half as fast again as with UCX's own sizes
//   and no copy, and a send that is given up ends at a border of the stream.
// - No keepalive of UCX's own: heartbeats judge a peer. Both ends of a path that both have given up answered
//   each other's over new connections, closed at once; 1.13 aborts the process where two of those cross.
// - What a path needs to notice a dead host by itself, beside the heartbeats; no connect that blocks the
//   event loop. docs/design/0043-ucx-events-and-segments.md
constexpr std::array<std::pair<const char*, const char*>, 9> fixed_options{{
    {"TX_SEG_SIZE", "256k"},
    {"RX_SEG_SIZE", "256k"},
    {"ZCOPY_THRESH", "inf"},
    {"KEEPALIVE_INTERVAL", "inf"},
    {"KEEPIDLE", "1s"}, // of the tcp transport, as the three below: named without its prefix here
    {"KEEPINTVL", "1s"},
    {"KEEPCNT", "2"},
    {"CONN_NB", "y"},
    {"MAX_EAGER_LANES", "1"},
}};

// UCX catches these when its library is loaded; the program that embeds us decides about signals. Only
// handlers that are still UCX's are given back.
void give_signals_back() {
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction current {};
    Dl_info owner{};
    if (::sigaction(signal, nullptr, &current) == 0 &&
        ::dladdr(reinterpret_cast<void*>(current.sa_sigaction), &owner) != 0 && owner.dli_fname != nullptr &&
        std::string_view{owner.dli_fname}.find("libucs") != std::string_view::npos)
      ucs_debug_disable_signal(signal);
  }
}

// A failed path is a value here, not a line on standard output (where UCX logs); a fatal one is still told.
// Whoever sets UCX_LOG_LEVEL gets what he asked for.
void quieten() {
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

// Before 1.16 the second protocols are an experiment: their rendezvous aborts the process when a peer dies.
bool second_protocols_abort() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return major == 1 && minor < 16;
}

ucs_status_t configure(ucp_config_t* config, const ucx_settings& settings) {
  if (second_protocols_abort())
    if (const auto status = ucp_config_modify(config, "PROTO_ENABLE", "n"); status != UCS_OK) return status;
  for (const auto& [name, value] : fixed_options)
    if (const auto status = ucp_config_modify(config, name, value); status != UCS_OK) return status;
  if (!settings.transports.empty())
    if (const auto status = ucp_config_modify(config, "TLS", settings.transports.c_str()); status != UCS_OK)
      return status;
  if (!settings.devices.empty())
    if (const auto status = ucp_config_modify(config, "NET_DEVICES", settings.devices.c_str());
        status != UCS_OK)
      return status;
  for (const auto& [name, value] : settings.options)
    if (const auto status = ucp_config_modify(config, name.c_str(), value.c_str()); status != UCS_OK)
      return status;
  return UCS_OK;
}

} // namespace

expected<std::unique_ptr<ucx_worker>> ucx_worker::open(const ucx_settings& settings) {
  give_signals_back();
  quieten();
  (void)events_apart(); // so every program with a worker has event_order.cpp
  std::unique_ptr<ucx_worker> self{new ucx_worker};
  auto status = self->open_context(settings);
  if (status == UCS_OK) status = self->open_worker();
  if (status == UCS_OK) return self;
  return error{errc::bad_argument, "UCX cannot start with transports '" + settings.transports +
                                       "' and devices '" + settings.devices +
                                       "': " + ucs_status_string(status) + " (ucx_info -d lists both)"};
}

ucs_status_t ucx_worker::open_context(const ucx_settings& settings) {
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) return status;
  auto status = configure(config, settings);
  if (status == UCS_OK) {
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    status = ucp_init(&params, config, &context_);
  }
  ucp_config_release(config);
  return status;
}

ucs_status_t ucx_worker::open_worker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  params.am_alignment = message_alignment;
  if (const auto status = ucp_worker_create(context_, &params, &worker_); status != UCS_OK) return status;
  int fd = -1;
  if (const auto status = ucp_worker_get_efd(worker_, &fd); status != UCS_OK) return status;
  wakeup_fd_ = ::dup(fd);
  if (wakeup_fd_ < 0) return UCS_ERR_IO_ERROR;
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &bytes); status != UCS_OK) return status;
  const auto* first = reinterpret_cast<const std::byte*>(address);
  address_.assign(first, first + bytes);
  ucp_worker_release_address(worker_, address);
  return UCS_OK;
}

ucx_worker::~ucx_worker() {
  if (wakeup_fd_ >= 0) ::close(wakeup_fd_);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

int ucx_worker::release_wakeup_fd() {
  return std::exchange(wakeup_fd_, -1);
}

void ucx_worker::on_active_message(unsigned id, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA; // persistent: aligned data
  params.cb = callback;
  params.arg = argument;
  const auto status = ucp_worker_set_am_recv_handler(worker_, &params);
  invariant(status == UCS_OK, "a UCX worker takes the handlers of its active messages");
}

bool ucx_worker::arm() {
  return ucp_worker_arm(worker_) == UCS_OK;
}

} // namespace troupe
