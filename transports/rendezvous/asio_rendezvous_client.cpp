#include <algorithm>
#include <set>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "runtime/base/units.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/rendezvous/frame_stream.hpp"
#include "transports/rendezvous/limits.hpp"
#include "transports/rendezvous/listen_address.hpp"

namespace troupe {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

// One join under way, over as many tries as it takes.
struct joining {
  joining(asio::io_context& loop, std::string where)
      : endpoint{std::move(where)}
      , resolver{loop}
      , stream{tcp::socket{loop}} {}
  std::string endpoint;
  host_port target;
  wire_bytes offer;
  rendezvous_client::joined done;
  tcp::resolver resolver;
  frame_stream stream;
  timer_id deadline{0};
  std::string last_failure{"no try"};
  bool over{false};

  void close() {
    resolver.cancel();
    stream.close();
  }
};
using joining_ptr = std::shared_ptr<joining>;

error not_ours(const joining& join) {
  return {errc::refused, "what answers at " + join.endpoint + " does not hold this job's token"};
}

} // namespace

struct asio_rendezvous_client::state : std::enable_shared_from_this<state> {
  state(asio::io_context& on, clock_seam& with_clock, entropy& with_random, job_token with_token,
        rendezvous_client_settings with)
      : loop{on}
      , clock{with_clock}
      , random{with_random}
      , token{std::move(with_token)}
      , settings{std::move(with)} {
    if (settings.version == 0) settings.version = rendezvous_version;
  }

  void begin(const joining_ptr& join, duration deadline);
  void finish(const joining_ptr& join, expected<join_answer> result);
  asio::awaitable<void> run(joining_ptr join);
  asio::awaitable<expected<join_answer>> try_once(joining& join);
  asio::awaitable<expected<join_answer>> exchange(joining& join);
  asio::awaitable<expected<exchange_frame>> receive(joining& join, exchange_step step);

  asio::io_context& loop;
  clock_seam& clock;
  entropy& random;
  job_token token;
  rendezvous_client_settings settings;
  std::set<joining_ptr> under_way;
};

void asio_rendezvous_client::state::begin(const joining_ptr& join, duration deadline) {
  under_way.insert(join);
  join->deadline = clock.call_after(deadline, [weak = weak_from_this(), late = join, deadline] {
    const auto self = weak.lock();
    if (!self) return;
    self->finish(late, error{errc::timed_out, "no answer from " + late->endpoint + " within " +
                                                  format_duration(deadline) + ": " + late->last_failure});
  });
  asio::co_spawn(loop, run(join), asio::detached);
}

// Calls `done` exactly once; later outcomes of the same join are nobody's business.
void asio_rendezvous_client::state::finish(const joining_ptr& join, expected<join_answer> result) {
  if (std::exchange(join->over, true)) return;
  clock.cancel(join->deadline);
  join->close();
  under_way.erase(join);
  join->done(std::move(result));
}

asio::awaitable<void> asio_rendezvous_client::state::run(joining_ptr join) {
  const auto self = shared_from_this();
  auto pause = settings.retry_first;
  while (!join->over) {
    auto result = co_await try_once(*join);
    if (join->over) co_return;
    if (result || result.failure().code != errc::path_lost) {
      finish(join, std::move(result));
      co_return;
    }
    join->last_failure = result.failure().text;
    join->close();
    co_await pause_for(clock, pause);
    pause = std::min(pause * 2, settings.retry_max);
  }
}

asio::awaitable<expected<join_answer>> asio_rendezvous_client::state::try_once(joining& join) {
  const auto [unresolved, endpoints] =
      co_await join.resolver.async_resolve(join.target.host, std::to_string(join.target.port), as_result);
  if (unresolved) co_return error{errc::path_lost, "resolving: " + unresolved.message()};
  if (join.over) co_return error{errc::path_lost, "over"};
  const auto [unconnected, endpoint] =
      co_await asio::async_connect(join.stream.unconnected(), endpoints, as_result);
  if (unconnected == asio::error::connection_refused && settings.refusal_is_final)
    co_return error{errc::process_died, "nobody listens at " + join.endpoint + " any more"};
  if (unconnected) co_return error{errc::path_lost, "connecting: " + unconnected.message()};
  if (settings.tls) {
    const auto secured = co_await join.stream.start_tls(*settings.tls, join.target.host);
    if (!secured) co_return secured.failure();
  }
  co_return co_await exchange(join);
}

// The next frame, if it is the one that `step` calls for.
asio::awaitable<expected<exchange_frame>> asio_rendezvous_client::state::receive(joining& join,
                                                                                 exchange_step step) {
  auto frame = co_await join.stream.receive(limits::rendezvous_frame_bytes_max);
  if (!frame) co_return frame.failure();
  if (frame->step == exchange_step::refusal) {
    const auto code = frame->refusal.code == errc::wrong_version ? errc::wrong_version : errc::refused;
    co_return error{code, join.endpoint + " refused: " + frame->refusal.text};
  }
  if (frame->version != settings.version)
    co_return error{errc::wrong_version, join.endpoint + " speaks rendezvous version " +
                                             std::to_string(frame->version) + ", this build version " +
                                             std::to_string(settings.version)};
  if (frame->step != step) co_return error{errc::refused, join.endpoint + " sent a frame out of turn"};
  co_return frame;
}

asio::awaitable<expected<join_answer>> asio_rendezvous_client::state::exchange(joining& join) {
  proof_context context{
      .client_version = settings.version, .client = fresh_nonce(random), .binding = join.stream.binding()};
  const auto greeted =
      co_await join.stream.send(encode_nonce(settings.version, exchange_step::hello, context.client));
  if (!greeted) co_return greeted.failure();
  const auto challenge = co_await receive(join, exchange_step::challenge);
  if (!challenge) co_return challenge.failure();
  const auto nonce = nonce_of(*challenge);
  if (!nonce) co_return nonce.failure();
  context.server = *nonce;
  context.server_version = challenge->version;
  const auto proof = prove(token.text(), proof_purpose::offer, context, join.offer);
  const auto offered =
      co_await join.stream.send(encode_signed(settings.version, exchange_step::offer, join.offer, proof));
  if (!offered) co_return offered.failure();
  const auto answer = co_await receive(join, exchange_step::answer);
  if (!answer) co_return answer.failure();
  context.answers_to = proof;
  if (!same_proof(prove(token.text(), proof_purpose::answer, context, answer->body), answer->proof)) // RV-1
    co_return not_ours(join);
  auto joined = decode_answer(answer->body);
  if (joined) joined->secret = derive_path_secret(token.text(), joined->job);
  co_return joined;
}

asio_rendezvous_client::asio_rendezvous_client(asio::io_context& loop, clock_seam& clock, entropy& random,
                                               job_token token, rendezvous_client_settings settings)
    : state_{std::make_shared<state>(loop, clock, random, std::move(token), std::move(settings))} {}

asio_rendezvous_client::~asio_rendezvous_client() {
  for (const auto& join : state_->under_way) {
    join->over = true;
    state_->clock.cancel(join->deadline);
    join->close();
  }
  state_->under_way.clear();
}

void asio_rendezvous_client::join(const std::string& endpoint, const join_offer& offer, duration deadline,
                                  joined done) {
  auto target = parse_host_port(state_->settings.option, endpoint);
  if (!target) {
    done(target.failure());
    return;
  }
  auto join = std::make_shared<joining>(state_->loop, endpoint);
  join->target = std::move(*target);
  join->offer = encode_offer(offer);
  join->done = std::move(done);
  state_->begin(join, deadline);
}

} // namespace troupe
