// Rendezvous over TCP: the director listens, whoever wants to join asks.
//
// Flow:     client: hello, offer -> server: challenge, answer (exchange.hpp).
// Owns:     sockets and a copy of the token; nothing outlives `stop` or the object.
// Runs on:  the event loop. Deadlines come from the clock seam, nonces from the entropy seam (which must
//           be the system's in a real process).
// Fails:    errc::refused (token, TLS, admission, not a rendezvous), wrong_version, timed_out, bad_argument.
// Invariants:
//   RV-1    nothing of an offer or an answer is parsed before its proof has been checked.
//   RV-2    no received byte sequence ends the process or keeps a connection beyond its deadline.
//   RV-3    at most `connections_max` exchanges are in flight; the others wait in the system's queue.
//   RV-4    the token, and the path secret derived from it, are in no message, error or log.
//   RV-6    with TLS on one side nothing of an exchange is said or taken in the clear, but a refusal of it.
// Why:      docs/design/0013-rendezvous.md, docs/design/0031-tls-for-the-rendezvous.md
#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "runtime/seams/clock.hpp"
#include "runtime/seams/entropy.hpp"
#include "runtime/seams/rendezvous.hpp"
#include "transports/rendezvous/job_token.hpp"
#include "transports/rendezvous/tls_context.hpp"

namespace troupe {

struct rendezvous_server_settings {
  std::string option{"--listen"};    // named in errors
  std::string listen{"127.0.0.1:0"}; // a numeric address or localhost; port 0: any
  tls_context::ptr tls{};            // none: in the clear
  duration exchange_deadline{std::chrono::seconds{2}};
  unsigned connections_max{64};
  std::uint32_t version{0}; // 0: this build's; tests play another build
};

struct rendezvous_counters {
  std::uint64_t admitted{0};
  std::uint64_t refused{0}; // wrong token, wrong version, malformed, or by the caller's decision
  std::uint64_t expired{0}; // ended by the deadline
};

class asio_rendezvous_server final : public rendezvous_server {
public:
  asio_rendezvous_server(boost::asio::io_context& loop, clock_seam& clock, entropy& random, job_token token,
                         rendezvous_server_settings settings);
  ~asio_rendezvous_server() override;
  expected<void> start(admit decide) override;
  [[nodiscard]] std::string endpoint() const override;
  [[nodiscard]] path_secret secret_of(job_id job) const override;
  void stop() override;
  [[nodiscard]] const rendezvous_counters& counters() const;

private:
  struct state;
  std::shared_ptr<state> state_;
};

struct rendezvous_client_settings {
  std::string option{"--join"};                        // named in errors
  tls_context::ptr tls{};                              // none: in the clear
  duration retry_first{std::chrono::milliseconds{10}}; // doubles up to
  duration retry_max{std::chrono::milliseconds{500}};
  std::uint32_t version{0}; // 0: this build's; tests play another build
  // The director is our parent and listened before we were started: where nobody listens, it is dead.
  bool refusal_is_final{false};
};

class asio_rendezvous_client final : public rendezvous_client {
public:
  asio_rendezvous_client(boost::asio::io_context& loop, clock_seam& clock, entropy& random, job_token token,
                         rendezvous_client_settings settings = {});
  ~asio_rendezvous_client() override; // abandons what is under way: `done` is not called any more
  void join(const std::string& endpoint, const join_offer& offer, duration deadline, joined done) override;

private:
  struct state;
  std::shared_ptr<state> state_;
};

} // namespace troupe
