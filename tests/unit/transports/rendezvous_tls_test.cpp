// The rendezvous inside TLS: who believes whom, what each is told, and what the wire shows.
#include <array>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/limits.hpp"
#include "tests/support/certificates.hpp"
#include "tests/unit/transports/rendezvous_house.hpp"
#include "transports/rendezvous/tls_context.hpp"

namespace troupe::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

// One authority, a director's certificate by it, and the contexts that most tests need.
struct papers {
  scratch_folder folder;
  test_authority authority{folder, "authority"};
  test_authority stranger{folder, "stranger"};
  pem_files director{authority.issue("director")};

  [[nodiscard]] tls_context::ptr of_director(const pem_files& shown, const std::string& demanded = {}) const {
    auto made =
        tls_context::of_director({.certificate = shown.certificate, .key = shown.key, .authority = demanded});
    INFO((made ? "" : made.failure().text));
    REQUIRE(made);
    return *made;
  }
  [[nodiscard]] tls_context::ptr of_joiner(const std::string& believed, const pem_files& shown = {}) const {
    auto made =
        tls_context::of_joiner({.certificate = shown.certificate, .key = shown.key, .authority = believed});
    INFO((made ? "" : made.failure().text));
    REQUIRE(made);
    return *made;
  }
  [[nodiscard]] tls_context::ptr usual_director() const { return of_director(director); }
  [[nodiscard]] tls_context::ptr usual_joiner() const { return of_joiner(authority.file()); }
};

// Why a joiner was refused; never more than one line.
std::string refusal(const expected<join_answer>& answer) {
  if (answer) return "accepted";
  CHECK(answer.failure().code == errc::refused);
  CHECK(answer.failure().text.find('\n') == std::string::npos);
  return answer.failure().text;
}

// A director that is not ours: whatever certificate it has, it shows.
struct other_director {
  asio::ssl::context context{asio::ssl::context::tls_server};
  tcp::acceptor acceptor;
  std::optional<asio::ssl::stream<tcp::socket>> stream;

  other_director(asio_loop& loop, const pem_files& shown)
      : acceptor{loop.context, {asio::ip::make_address("127.0.0.1"), 0}} {
    context.use_certificate_chain_file(shown.certificate);
    context.use_private_key_file(shown.key, asio::ssl::context::pem);
    acceptor.async_accept([this](const boost::system::error_code& failed, tcp::socket socket) {
      if (failed) return;
      stream.emplace(std::move(socket), context);
      stream->async_handshake(asio::ssl::stream_base::server, [](const boost::system::error_code&) {});
    });
  }
  [[nodiscard]] std::string endpoint() const {
    return "127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  }
};

TEST_CASE("tls: a joiner that believes the director's authority gets in, and both learn what was said") {
  const papers given;
  house here{{.tls = given.usual_director()}};
  const auto answer = here.join(here.token, {.tls = given.usual_joiner()});
  INFO((answer ? "" : answer.failure().text));
  REQUIRE(answer);
  CHECK(answer->job == job_id{5, 6});
  CHECK(answer->settings == "opaque");
  CHECK(answer->secret.bytes() == here.server->secret_of({5, 6}).bytes());
  REQUIRE(here.offers.size() == 1);
  CHECK(here.offers.front().address == peer_address(200, std::byte{7}));
  CHECK(here.server->counters().admitted == 1);
}

TEST_CASE("tls: the largest answer arrives whole, over many records") {
  const papers given;
  house here{{.tls = given.usual_director()}};
  here.settings.assign(limits::envelope_bytes_max, 's');
  const auto answer = here.join(here.token, {.tls = given.usual_joiner()});
  REQUIRE(answer);
  CHECK(answer->settings == here.settings);
}

TEST_CASE("tls: the token is needed all the same (RV-1)") {
  const papers given;
  house here{{.tls = given.usual_director()}};
  const auto answer = here.join(job_token::generate(here.loop.random), {.tls = given.usual_joiner()});
  CHECK(refusal(answer) == here.server->endpoint() + " refused: the job token is not this job's");
  CHECK(here.offers.empty());
}

TEST_CASE("tls: a director of another authority is not believed (TL-1)") {
  const papers given;
  house here{{.tls = given.usual_director()}};
  CHECK(refusal(here.join(here.token, {.tls = given.of_joiner(given.stranger.file())})) ==
        "the director's certificate is of no authority in --tls-ca " + given.stranger.file() +
            "; accepted: the authority's that has signed it");
  CHECK(here.offers.empty());
  REQUIRE(here.loop.run_until([&] { return here.server->counters().refused == 1; }));
  CHECK(here.join(here.token, {.tls = given.usual_joiner()})); // and the next one is served
}

TEST_CASE("tls: a certificate holds for its names and addresses only (TL-1)") {
  const papers given;
  const auto other = given.authority.issue("other", {.alternatives = "DNS:other.example,IP:10.0.0.1"});
  const auto local = given.authority.issue("local", {.alternatives = "DNS:localhost"});
  const auto named =
      given.authority.issue("localhost", {.alternatives = ""}); // its subject is no name of a host
  const auto joiner = given.usual_joiner();
  const auto join = [&](const pem_files& shown, const std::string& host) {
    house here{{.tls = given.of_director(shown)}};
    return refusal(here.join_at(host + ":" + std::to_string(here.port()), here.token, {.tls = joiner}));
  };
  const auto not_for = [](const std::string& host) {
    return "the director's certificate is not for '" + host +
           "'; accepted: --join with a name or address that its subjectAltName holds";
  };
  CHECK(join(other, "127.0.0.1") == not_for("127.0.0.1"));
  CHECK(join(other, "localhost") == not_for("localhost"));
  CHECK(join(local, "127.0.0.1") == not_for("127.0.0.1"));
  CHECK(join(local, "localhost") == "accepted");
  CHECK(join(named, "localhost") == not_for("localhost"));
}

TEST_CASE("tls: a certificate that has expired, or is not valid yet, is not believed (TL-1)") {
  const papers given;
  asio_loop loop;
  const auto join = [&](const certificate_wish& wish) {
    other_director director{loop, given.authority.issue("dated", wish)};
    asio_rendezvous_client client{loop.context, loop.clock, loop.random, job_token::generate(loop.random),
                                  rendezvous_client_settings{.tls = given.usual_joiner()}};
    std::optional<expected<join_answer>> result;
    client.join(director.endpoint(), some_offer(), std::chrono::seconds{10},
                [&](expected<join_answer> answer) { result = std::move(answer); });
    REQUIRE(loop.run_until([&] { return result.has_value(); }));
    return refusal(*result);
  };
  CHECK(join({.until = std::chrono::seconds{-60}}) ==
        "the director's certificate has expired; accepted: one that is valid now, by this machine's clock");
  CHECK(join({.from = std::chrono::seconds{600}})
            .starts_with("the director's certificate is not valid yet; accepted: one that is valid now"));
}

TEST_CASE("tls: who does not speak TLS to a director that does is told so, and the reverse (RV-6)") {
  const papers given;
  house secured{{.tls = given.usual_director()}};
  CHECK(refusal(secured.join(secured.token)) ==
        secured.server->endpoint() +
            " refused: this director takes TLS only; accepted: a join with --tls-ca FILE");
  CHECK(secured.server->counters().refused == 1);
  house plain;
  CHECK(refusal(plain.join(plain.token, {.tls = given.usual_joiner()})) ==
        "no TLS is spoken there; accepted: a director with --tls-cert FILE and --tls-key FILE");
  REQUIRE(plain.loop.run_until([&] { return plain.server->counters().refused == 1; }));
  CHECK(plain.join(plain.token));
}

TEST_CASE("tls: older versions are refused") {
  const papers given;
  house here{{.tls = given.usual_director()}};
  asio::ssl::context old{asio::ssl::context::tls_client};
  REQUIRE(SSL_CTX_set_max_proto_version(old.native_handle(), TLS1_2_VERSION) == 1);
  asio::ssl::stream<tcp::socket> stream{here.stranger({}), old};
  std::optional<boost::system::error_code> said;
  stream.async_handshake(asio::ssl::stream_base::client,
                         [&](const boost::system::error_code& failed) { said = failed; });
  REQUIRE(here.loop.run_until([&] { return said.has_value(); }));
  CHECK(ERR_GET_REASON(static_cast<unsigned>(said->value())) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
}

TEST_CASE("tls: a director that was given an authority demands certificates of it (TL-2)") {
  const papers given;
  house here{{.tls = given.of_director(given.director, given.authority.file())}};
  const auto join = [&](const pem_files& shown) {
    return refusal(here.join(here.token, {.tls = given.of_joiner(given.authority.file(), shown)}));
  };
  const auto node = given.authority.issue("node", {.alternatives = "DNS:node-1"});
  CHECK(join(node) == "accepted");
  CHECK(join({}) == "the director demands a certificate; accepted: with --tls-cert FILE and --tls-key FILE");
  const auto foreign = given.stranger.issue("foreign");
  CHECK(join(foreign) == "the director's --tls-ca does not hold the authority of --tls-cert " +
                             foreign.certificate + "; accepted: a certificate of that authority");
  const auto server_only = given.authority.issue("server-only", {.usage = "serverAuth"});
  CHECK(join(server_only) ==
        "the director did not accept --tls-cert " + server_only.certificate + ": unsupported certificate");
  CHECK(here.offers.size() == 1);
  CHECK(here.loop.run_until([&] { return here.server->counters().refused == 3; }));
}

TEST_CASE("tls: a started worker knows its director by the certificate, whatever its names (TL-1, TL-2)") {
  const papers given;
  const auto shown = given.stranger.issue("shown", {.alternatives = "DNS:elsewhere", .usage = "serverAuth"});
  const auto director = given.of_director(shown, given.authority.file()); // which would not vouch for it
  house here{{.tls = director}};
  const auto started = [&](const tls_settings& settings) {
    const auto joiner = tls_context::of_joiner(settings);
    REQUIRE(joiner);
    return refusal(here.join(here.token, {.tls = *joiner}));
  };
  CHECK(started({.certificate = shown.certificate, .key = shown.key, .director = director->digest()}) ==
        "accepted");
  CHECK(started({.certificate = shown.certificate,
                 .key = shown.key,
                 .director = given.usual_director()->digest()}) ==
        "the director's certificate is another one than this worker was started with");
}

TEST_CASE("tls: a silent or a chattering stranger costs no more than its place until the deadline (RV-2)") {
  const papers given;
  house here{{.tls = given.usual_director(), .exchange_deadline = std::chrono::milliseconds{200}}};
  std::vector<tcp::socket> silent;
  silent.push_back(here.stranger({}));
  silent.push_back(here.stranger({std::byte{0x16}}));
  silent.push_back(here.stranger({std::byte{0x16}, std::byte{3}, std::byte{1}, std::byte{2}, std::byte{0}}));
  REQUIRE(here.loop.run_until([&] { return here.server->counters().expired == 3; }));
  for (std::uint64_t round = 0; round < 60; ++round) {
    const counter_rng random{round, stream_of("strangers to TLS")};
    wire_bytes bytes{std::byte{0x16}, std::byte{3}, std::byte{1}};
    for (std::uint64_t at = 0; at < random.bits(0) % 400; ++at)
      bytes.push_back(static_cast<std::byte>(random.bits(at + 1) & 0xffU));
    auto socket = here.stranger(bytes);
    socket.shutdown(tcp::socket::shutdown_send);
    std::vector<char> said;
    bool ended = false;
    asio::async_read(socket, asio::dynamic_buffer(said),
                     [&](const boost::system::error_code&, std::size_t) { ended = true; });
    REQUIRE(here.loop.run_until([&] { return ended; }));
  }
  CHECK(here.offers.empty());
}

// Passes bytes on until one side ends, and keeps them.
template <class From, class To>
asio::awaitable<void> pass_on(From& from, To& to, std::string& heard) {
  std::array<char, 4096> piece{};
  for (;;) {
    const auto [ended, bytes] = co_await from.async_read_some(asio::buffer(piece), as_result);
    if (ended) break;
    heard.append(piece.data(), bytes);
    const auto [unsent, sent] = co_await asio::async_write(to, asio::buffer(piece, bytes), as_result);
    if (unsent) break;
  }
  boost::system::error_code ignored;
  to.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored);
}

// Between a joiner and its director: passes everything on, and hears it.
struct eavesdropper {
  tcp::acceptor acceptor;
  tcp::socket joiner, director;
  std::string heard;

  explicit eavesdropper(house& of)
      : acceptor{of.loop.context, {asio::ip::make_address("127.0.0.1"), 0}}
      , joiner{of.loop.context}
      , director{of.loop.context} {
    director.connect({asio::ip::make_address("127.0.0.1"), of.port()});
    acceptor.async_accept(joiner, [this, &of](const boost::system::error_code& failed) {
      if (failed) return;
      asio::co_spawn(of.loop.context, pass_on(joiner, director, heard), asio::detached);
      asio::co_spawn(of.loop.context, pass_on(director, joiner, heard), asio::detached);
    });
  }
  [[nodiscard]] std::string endpoint() const {
    return "127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  }
};

TEST_CASE("tls: on the wire nothing of offer and answer can be read; without TLS all of it (RV-6)") {
  const papers given;
  const auto reads = [](house& here, const rendezvous_client_settings& settings, const char* text) {
    eavesdropper between{here};
    REQUIRE(here.join_at(between.endpoint(), here.token, settings));
    CHECK(between.heard.size() > 400);
    return between.heard.find(text) != std::string::npos;
  };
  house plain;
  house secured{{.tls = given.usual_director()}};
  for (const auto* text : {"fashion_mnist", "host-a", "opaque"}) {
    CHECK(reads(plain, {}, text));
    CHECK_FALSE(reads(secured, {.tls = given.usual_joiner()}, text));
  }
}

// Ends the joiner's TLS itself, by a certificate that the joiner believes, and has its own to the director.
struct man_in_the_middle {
  asio::ssl::context shown{asio::ssl::context::tls_server};
  asio::ssl::context trusting{asio::ssl::context::tls_client};
  tcp::acceptor acceptor;
  std::optional<asio::ssl::stream<tcp::socket>> joiner, director;
  std::string heard;

  man_in_the_middle(house& of, const pem_files& certificate)
      : acceptor{of.loop.context, {asio::ip::make_address("127.0.0.1"), 0}} {
    shown.use_certificate_chain_file(certificate.certificate);
    shown.use_private_key_file(certificate.key, asio::ssl::context::pem);
    asio::co_spawn(of.loop.context, work(of), asio::detached);
  }
  asio::awaitable<void> work(house& of) {
    auto [unaccepted, socket] = co_await acceptor.async_accept(as_result);
    if (unaccepted) co_return;
    joiner.emplace(std::move(socket), shown);
    director.emplace(of.stranger({}), trusting);
    const auto [no_joiner] = co_await joiner->async_handshake(asio::ssl::stream_base::server, as_result);
    const auto [no_director] = co_await director->async_handshake(asio::ssl::stream_base::client, as_result);
    if (no_joiner || no_director) co_return;
    asio::co_spawn(of.loop.context, pass_on(*joiner, *director, heard), asio::detached);
    asio::co_spawn(of.loop.context, pass_on(*director, *joiner, heard), asio::detached);
  }
};

TEST_CASE("tls: a proof holds in its own TLS session only: who relays between two is found out") {
  const papers given;
  house here{{.tls = given.usual_director()}};
  man_in_the_middle between{here, given.authority.issue("middle")};
  const auto where = "127.0.0.1:" + std::to_string(between.acceptor.local_endpoint().port());
  const auto answer = here.join_at(where, here.token, {.tls = given.usual_joiner()});
  CHECK(refusal(answer) == where + " refused: the job token is not this job's");
  CHECK(between.heard.find("fashion_mnist") != std::string::npos); // the offer did come through it
  CHECK(here.offers.empty());
}

} // namespace
} // namespace troupe::test
