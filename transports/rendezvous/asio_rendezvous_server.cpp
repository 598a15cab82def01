#include <set>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/rendezvous/frame_stream.hpp"
#include "transports/rendezvous/limits.hpp"
#include "transports/rendezvous/listen_address.hpp"

namespace troupe {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
constexpr duration accept_pause{std::chrono::milliseconds{20}}; // when descriptors have run out

struct exchange_session {
  explicit exchange_session(tcp::socket accepted)
      : stream{std::move(accepted)} {}
  frame_stream stream;
  timer_id deadline{0};
};
using session_ptr = std::shared_ptr<exchange_session>;

expected<tcp::endpoint> resolve(const std::string& option, const std::string& text) {
  auto parsed = parse_host_port(option, text);
  if (!parsed) return parsed.failure();
  boost::system::error_code bad;
  const auto address = asio::ip::make_address(parsed->host == "localhost" ? "127.0.0.1" : parsed->host, bad);
  if (bad)
    return error{errc::bad_argument, option + " '" + text + "': HOST is a numeric address or localhost"};
  return tcp::endpoint{address, parsed->port};
}

std::string reason(const boost::system::error_code& why) {
  if (why == asio::error::address_in_use) return "address in use; accepted: a free port, or port 0 for any";
  auto text = why.message();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

} // namespace

struct asio_rendezvous_server::state : std::enable_shared_from_this<state> {
  state(asio::io_context& on, clock_seam& with_clock, entropy& with_random, job_token with_token,
        rendezvous_server_settings with)
      : loop{on}
      , clock{with_clock}
      , random{with_random}
      , token{std::move(with_token)}
      , settings{std::move(with)}
      , acceptor{on} {
    if (settings.version == 0) settings.version = rendezvous_version;
  }

  expected<void> listen();
  void accept_next();
  void begin(tcp::socket socket);
  void end(const session_ptr& session);
  void stop();
  asio::awaitable<void> serve(session_ptr session);
  asio::awaitable<expected<void>> open(frame_stream& stream);
  asio::awaitable<error> exchange(frame_stream& stream);
  error answer_to(const expected<join_offer>& offer, wire_bytes& body);

  asio::io_context& loop;
  clock_seam& clock;
  entropy& random;
  job_token token;
  rendezvous_server_settings settings;
  tcp::acceptor acceptor;
  admit decide;
  std::set<session_ptr> sessions;
  rendezvous_counters counters;
  bool accepting{false};
  bool stopped{false};
};

expected<void> asio_rendezvous_server::state::listen() {
  const auto endpoint = resolve(settings.option, settings.listen);
  if (!endpoint) return endpoint.failure();
  boost::system::error_code failed;
  acceptor.open(endpoint->protocol(), failed);
  if (!failed) acceptor.set_option(tcp::acceptor::reuse_address{true}, failed);
  if (!failed) acceptor.bind(*endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) return {};
  boost::system::error_code ignored;
  acceptor.close(ignored);
  return error{errc::bad_argument, settings.option + " " + settings.listen + ": " + reason(failed)};
}

void asio_rendezvous_server::state::accept_next() {
  accepting = !stopped && sessions.size() < settings.connections_max; // RV-3
  if (!accepting) return;
  acceptor.async_accept(
      [self = shared_from_this()](const boost::system::error_code& failed, tcp::socket socket) {
        if (self->stopped) return;
        if (!failed) {
          self->begin(std::move(socket));
          self->accept_next();
          return;
        }
        self->clock.call_after(accept_pause, [weak = std::weak_ptr{self}] {
          if (const auto later = weak.lock()) later->accept_next();
        });
      });
}

void asio_rendezvous_server::state::begin(tcp::socket socket) {
  auto session = std::make_shared<exchange_session>(std::move(socket));
  sessions.insert(session);
  session->deadline =
      clock.call_after(settings.exchange_deadline, [weak = std::weak_ptr{session}, owner = weak_from_this()] {
        const auto expired = weak.lock();
        const auto self = owner.lock();
        if (!expired || !self) return;
        ++self->counters.expired;
        expired->stream.close();
      });
  asio::co_spawn(loop, serve(session), asio::detached);
}

void asio_rendezvous_server::state::end(const session_ptr& session) {
  session->stream.close();
  if (stopped) return;
  clock.cancel(session->deadline);
  sessions.erase(session);
  if (!accepting) accept_next();
}

void asio_rendezvous_server::state::stop() {
  if (std::exchange(stopped, true)) return;
  boost::system::error_code ignored;
  acceptor.close(ignored);
  for (const auto& session : sessions) {
    clock.cancel(session->deadline);
    session->stream.close();
  }
  sessions.clear();
}

asio::awaitable<void> asio_rendezvous_server::state::serve(session_ptr session) {
  const auto self = shared_from_this();
  const error outcome = co_await exchange(session->stream);
  if (stopped) co_return;
  if (outcome.code == errc::refused || outcome.code == errc::wrong_version) {
    ++counters.refused;
    // NOLINTNEXTLINE: the refusal is told as far as the socket takes it
    (void)co_await session->stream.send(encode_refusal(settings.version, outcome));
  }
  if (outcome.code != errc::path_lost) co_await session->stream.finish_sending();
  end(session);
}

// TLS where it was asked for, and only there: whoever begins otherwise is told so, in the clear (RV-6).
asio::awaitable<expected<void>> asio_rendezvous_server::state::open(frame_stream& stream) {
  const auto begins_tls = co_await stream.peer_begins_tls();
  if (!begins_tls) co_return begins_tls.failure();
  if (*begins_tls && !settings.tls)
    co_return error{errc::refused, "this director was started without TLS"}; // a client of TLS cannot read it
  if (!*begins_tls && settings.tls)
    co_return error{errc::refused, "this director takes TLS only; accepted: a join with --tls-ca FILE"};
  if (!settings.tls) co_return expected<void>{};
  auto secured = co_await stream.start_tls(*settings.tls, {});
  if (secured || secured.failure().code != errc::refused) co_return secured;
  ++counters.refused;
  co_return error{errc::aborted, secured.failure().text}; // TLS has told it by an alert
}

// Ends with errc::refused or wrong_version: to be told; aborted: all has been said; path_lost: nobody there.
asio::awaitable<error> asio_rendezvous_server::state::exchange(frame_stream& stream) {
  const auto opened = co_await open(stream);
  if (!opened) co_return opened.failure();
  const auto hello = co_await stream.receive(limits::rendezvous_first_frame_bytes_max);
  if (!hello) co_return hello.failure();
  if (hello->version != settings.version)
    co_return error{errc::wrong_version, "speaks rendezvous version " + std::to_string(settings.version) +
                                             ", was asked in version " + std::to_string(hello->version)};
  const auto client_nonce = nonce_of(*hello);
  if (hello->step != exchange_step::hello || !client_nonce) co_return error{errc::refused, "no hello came"};
  proof_context context{.client_version = hello->version,
                        .server_version = settings.version,
                        .client = *client_nonce,
                        .server = fresh_nonce(random),
                        .binding = stream.binding()};
  const auto challenged =
      co_await stream.send(encode_nonce(settings.version, exchange_step::challenge, context.server));
  if (!challenged) co_return challenged.failure();

  const auto offer = co_await stream.receive(limits::rendezvous_offer_bytes_max);
  if (!offer) co_return offer.failure();
  if (stopped) co_return error{errc::path_lost, "stopped"};
  const auto proof = prove(token.text(), proof_purpose::offer, context, offer->body);
  if (offer->step != exchange_step::offer || !same_proof(proof, offer->proof)) // RV-1
    co_return error{errc::refused, "the job token is not this job's"};
  context.answers_to = proof;
  wire_bytes body;
  const auto said = answer_to(decode_offer(offer->body), body);
  const auto answer_proof = prove(token.text(), proof_purpose::answer, context, body);
  const auto answered =
      co_await stream.send(encode_signed(settings.version, exchange_step::answer, body, answer_proof));
  if (!answered) co_return answered.failure();
  co_return said;
}

error asio_rendezvous_server::state::answer_to(const expected<join_offer>& offer, wire_bytes& body) {
  auto answer = offer ? decide(*offer) : expected<join_answer>{offer.failure()};
  if (answer && answer->settings.size() > limits::envelope_bytes_max)
    answer = error{errc::too_large, "the job's settings do not fit an answer"};
  ++(answer ? counters.admitted : counters.refused);
  body = encode_answer(answer);
  return {errc::aborted, {}};
}

asio_rendezvous_server::asio_rendezvous_server(asio::io_context& loop, clock_seam& clock, entropy& random,
                                               job_token token, rendezvous_server_settings settings)
    : state_{std::make_shared<state>(loop, clock, random, std::move(token), std::move(settings))} {}

asio_rendezvous_server::~asio_rendezvous_server() {
  state_->stop();
}

expected<void> asio_rendezvous_server::start(admit decide) {
  if (auto listening = state_->listen(); !listening) return listening;
  state_->decide = std::move(decide);
  state_->accept_next();
  return {};
}

std::string asio_rendezvous_server::endpoint() const {
  boost::system::error_code closed;
  const auto local = state_->acceptor.local_endpoint(closed);
  if (closed) return {};
  const auto host = local.address().to_string();
  return (local.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(local.port());
}

path_secret asio_rendezvous_server::secret_of(job_id job) const {
  return derive_path_secret(state_->token.text(), job);
}

void asio_rendezvous_server::stop() {
  state_->stop();
}

const rendezvous_counters& asio_rendezvous_server::counters() const {
  return state_->counters;
}

} // namespace troupe
