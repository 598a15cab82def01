// The rendezvous over real sockets: who gets in, and what nobody can do to it.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch_test_macros.hpp>
#include <unistd.h>

#include "runtime/base/counter_rng.hpp"
#include "tests/unit/transports/rendezvous_house.hpp"
#include "transports/rendezvous/asio_rendezvous.hpp"
#include "transports/rendezvous/exchange.hpp"
#include "transports/rendezvous/limits.hpp"
#include "transports/rendezvous/listen_address.hpp"

namespace troupe::test {
namespace {

using boost::asio::ip::tcp;

TEST_CASE("rendezvous: where the director must be listening and nobody is, the join ends at once") {
  house here;
  const auto there = here.server->endpoint();
  here.server->stop();
  asio_rendezvous_client client{here.loop.context, here.loop.clock, here.loop.random, here.token,
                                rendezvous_client_settings{.refusal_is_final = true}};
  std::optional<expected<join_answer>> result;
  client.join(there, some_offer(), std::chrono::hours{1},
              [&](expected<join_answer> answer) { result = std::move(answer); });
  REQUIRE(here.loop.run_until([&] { return result.has_value(); }));
  CHECK(result->failure().code == errc::process_died);
}

TEST_CASE("rendezvous: the right token gets in, and both sides learn what was said") {
  house here;
  const auto answer = here.join(here.token);
  REQUIRE(answer);
  CHECK(answer->job == job_id{5, 6});
  CHECK(answer->director == incarnation_id{7, 8});
  CHECK(answer->address == peer_address(100, std::byte{9}));
  CHECK(answer->settings == "opaque");
  CHECK(answer->secret.valid());
  CHECK(answer->secret.bytes() == here.server->secret_of({5, 6}).bytes());
  REQUIRE(here.offers.size() == 1);
  const auto& offer = here.offers.front();
  CHECK(offer.incarnation == incarnation_id{1, 2});
  CHECK(offer.pid == 42);
  CHECK(offer.host == "host-a");
  CHECK(offer.machine == "boot/pid:[1]/0");
  CHECK(offer.program == "fashion_mnist");
  CHECK(offer.slot == 3);
  CHECK(offer.address == peer_address(200, std::byte{7}));
  CHECK(here.server->counters().admitted == 1);
}

TEST_CASE("rendezvous: a wrong token is refused; the offer is never looked at (RV-1, RV-4)") {
  house here;
  const auto wrong = job_token::generate(here.loop.random);
  const auto answer = here.join(wrong);
  REQUIRE_FALSE(answer);
  CHECK(answer.failure().code == errc::refused);
  CHECK(answer.failure().text.find("token") != std::string::npos);
  CHECK(answer.failure().text.find(wrong.text()) == std::string::npos);
  CHECK(answer.failure().text.find(here.token.text()) == std::string::npos);
  CHECK(here.offers.empty());
  CHECK(here.server->counters().refused == 1);
}

TEST_CASE("rendezvous: a refusal by the director arrives with its code and its text") {
  house here;
  here.turn_down = error{errc::wrong_program, "this job runs fashion_mnist"};
  const auto answer = here.join(here.token);
  REQUIRE_FALSE(answer);
  CHECK(answer.failure().code == errc::wrong_program);
  CHECK(answer.failure().text == "this job runs fashion_mnist");
}

TEST_CASE("rendezvous: another version is refused and named") {
  house here;
  const auto answer = here.join(here.token, {.version = 9});
  REQUIRE_FALSE(answer);
  CHECK(answer.failure().code == errc::wrong_version);
  CHECK(answer.failure().text.find("version " + std::to_string(rendezvous_version)) != std::string::npos);
  CHECK(answer.failure().text.find("version 9") != std::string::npos);
  CHECK(here.offers.empty());
}

TEST_CASE("rendezvous: garbage, oversized and out-of-turn frames are refused (RV-2)") {
  house here;
  wire_bytes bytes;
  SECTION("garbage of a plausible length") {
    bytes = wire_bytes(4 + 64, std::byte{0xa5});
    const std::uint32_t length = 64;
    std::memcpy(bytes.data(), &length, sizeof(length));
  }
  SECTION("a length of 4 GiB") {
    bytes = wire_bytes(4, std::byte{0xff});
  }
  SECTION("a length of nothing") {
    bytes = wire_bytes(4);
  }
  SECTION("an offer before the hello") {
    bytes = encode_signed(rendezvous_version, exchange_step::offer, encode_offer(some_offer()), {});
  }
  SECTION("a hello without a nonce") {
    bytes = encode_signed(rendezvous_version, exchange_step::answer, {}, {});
  }
  auto socket = here.stranger(bytes);
  REQUIRE(here.loop.run_until([&] { return here.server->counters().refused == 1; }));
  socket.close();
  CHECK(here.offers.empty());
  CHECK(here.join(here.token)); // and the next one is served
}

TEST_CASE("rendezvous: a truncated hello and a client that leaves cost nothing (RV-2)") {
  house here;
  auto hello = encode_nonce(rendezvous_version, exchange_step::hello, rendezvous_nonce{});
  hello.resize(hello.size() / 2);
  here.stranger(hello).close();
  CHECK(here.join(here.token));
  CHECK(here.server->counters().expired == 0);
}

TEST_CASE("rendezvous: silence ends at the deadline and frees its place (RV-2, RV-3)") {
  house here{{.exchange_deadline = std::chrono::milliseconds{30}, .connections_max = 2}};
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 5; ++i)
    silent.push_back(here.stranger({}));
  REQUIRE(here.loop.run_until([&] { return here.server->counters().expired == 5; }));
  CHECK(here.join(here.token));
}

TEST_CASE("rendezvous: a client waits for a server that is not there yet, until its deadline") {
  asio_loop loop;
  const auto token = job_token::generate(loop.random);
  std::string endpoint;
  {
    tcp::acceptor port{loop.context, {boost::asio::ip::make_address("127.0.0.1"), 0}};
    endpoint = "127.0.0.1:" + std::to_string(port.local_endpoint().port());
  }
  asio_rendezvous_client client{loop.context, loop.clock, loop.random, token};
  std::optional<expected<join_answer>> result;
  const auto note = [&](expected<join_answer> answer) { result = std::move(answer); };
  SECTION("it comes") {
    client.join(endpoint, some_offer(), std::chrono::seconds{20}, note);
    asio_rendezvous_server server{loop.context, loop.clock, loop.random, token, {.listen = endpoint}};
    bool started = false;
    loop.clock.call_after(std::chrono::milliseconds{25}, [&] {
      started =
          server.start([](const join_offer&) { return expected<join_answer>{some_answer()}; }).has_value();
    });
    REQUIRE(loop.run_until([&] { return result.has_value(); }));
    CHECK(started);
    CHECK(*result);
  }
  SECTION("it does not") {
    client.join(endpoint, some_offer(), std::chrono::milliseconds{40}, note);
    REQUIRE(loop.run_until([&] { return result.has_value(); }));
    REQUIRE_FALSE(*result);
    CHECK(result->failure().code == errc::timed_out);
    CHECK(result->failure().text.find(endpoint) != std::string::npos);
    CHECK(result->failure().text.find("within 40ms") != std::string::npos);
  }
}

TEST_CASE("rendezvous: a server that does not hold the token is found out by the client (RV-1)") {
  asio_loop loop;
  const auto token = job_token::generate(loop.random);
  tcp::acceptor impostor{loop.context, {boost::asio::ip::make_address("127.0.0.1"), 0}};
  const auto endpoint = "127.0.0.1:" + std::to_string(impostor.local_endpoint().port());
  tcp::socket socket{loop.context};
  impostor.async_accept(socket, [&](const boost::system::error_code& failed) {
    REQUIRE_FALSE(failed);
    auto bytes = encode_nonce(rendezvous_version, exchange_step::challenge, {});
    const auto answer =
        encode_signed(rendezvous_version, exchange_step::answer, encode_answer(some_answer()), {});
    bytes.insert(bytes.end(), answer.begin(), answer.end());
    boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()));
  });
  asio_rendezvous_client client{loop.context, loop.clock, loop.random, token};
  std::optional<expected<join_answer>> result;
  client.join(endpoint, some_offer(), std::chrono::seconds{10},
              [&](expected<join_answer> answer) { result = std::move(answer); });
  REQUIRE(loop.run_until([&] { return result.has_value(); }));
  REQUIRE_FALSE(*result);
  CHECK(result->failure().code == errc::refused);
}

// `sound`, changed in one to four places: a bit, a byte, a cut, a repeated piece.
wire_bytes damaged(const wire_bytes& sound, std::uint64_t number) {
  const counter_rng random{number, stream_of("damaged streams")};
  auto bytes = sound;
  for (std::uint64_t at = 0; at < 1 + random.bits(99) % 4 && !bytes.empty(); ++at) {
    const auto draw = random.block(at);
    const auto place = static_cast<std::ptrdiff_t>(draw[0] % bytes.size());
    auto& byte = bytes[static_cast<std::size_t>(place)];
    if (draw[1] % 4 == 0) byte ^= std::byte{1} << (draw[2] % 8);
    if (draw[1] % 4 == 1) byte = static_cast<std::byte>(draw[2] & 0xffU);
    if (draw[1] % 4 == 2) bytes.erase(bytes.begin() + place, bytes.end());
    if (draw[1] % 4 == 3) bytes.insert(bytes.end(), sound.begin(), sound.begin() + place % 32);
  }
  return bytes;
}

TEST_CASE("rendezvous: damaged streams of several frames cost the server nothing (RV-1, RV-2)") {
  house here;
  auto sound = encode_nonce(rendezvous_version, exchange_step::hello, rendezvous_nonce{});
  const auto offer = encode_signed(rendezvous_version, exchange_step::offer, encode_offer(some_offer()), {});
  sound.insert(sound.end(), offer.begin(), offer.end());
  for (std::uint64_t round = 0; round < 300; ++round) {
    auto socket = here.stranger(damaged(sound, round));
    socket.shutdown(tcp::socket::shutdown_send);
    std::vector<char> said;
    bool ended = false;
    boost::asio::async_read(socket, boost::asio::dynamic_buffer(said),
                            [&](const boost::system::error_code&, std::size_t) { ended = true; });
    REQUIRE(here.loop.run_until([&] { return ended; }));
  }
  CHECK(here.offers.empty());
  CHECK(here.server->counters().admitted == 0);
  CHECK(here.join(here.token));
}

TEST_CASE("rendezvous: damaged answers are refused, or tried again until the deadline (RV-1, RV-2)") {
  asio_loop loop;
  const auto token = job_token::generate(loop.random);
  auto sound = encode_nonce(rendezvous_version, exchange_step::challenge, {});
  const auto answer =
      encode_signed(rendezvous_version, exchange_step::answer, encode_answer(some_answer()), {});
  sound.insert(sound.end(), answer.begin(), answer.end());
  for (std::uint64_t round = 0; round < 40; ++round) {
    tcp::acceptor impostor{loop.context, {boost::asio::ip::make_address("127.0.0.1"), 0}};
    const auto bytes = damaged(sound, round);
    tcp::socket socket{loop.context};
    impostor.async_accept(socket, [&](const boost::system::error_code& failed) {
      boost::system::error_code ignored; // the client may have left already
      if (!failed) boost::asio::write(socket, boost::asio::buffer(bytes.data(), bytes.size()), ignored);
    });
    asio_rendezvous_client client{loop.context, loop.clock, loop.random, token};
    std::optional<expected<join_answer>> result;
    client.join("127.0.0.1:" + std::to_string(impostor.local_endpoint().port()), some_offer(),
                std::chrono::milliseconds{20}, [&](expected<join_answer> said) { result = std::move(said); });
    REQUIRE(loop.run_until([&] { return result.has_value(); }));
    CHECK_FALSE(*result);
  }
}

TEST_CASE("rendezvous: a port in use is one line that names the option and the address") {
  house here;
  asio_rendezvous_server second{
      here.loop.context, here.loop.clock, here.loop.random, here.token, {.listen = here.server->endpoint()}};
  const auto started = second.start([](const join_offer&) { return expected<join_answer>{some_answer()}; });
  REQUIRE_FALSE(started);
  CHECK(started.failure().code == errc::bad_argument);
  CHECK(started.failure().text ==
        "--listen " + here.server->endpoint() + ": address in use; accepted: a free port, or port 0 for any");
}

TEST_CASE("rendezvous: addresses that cannot be listened on are named") {
  asio_loop loop;
  for (const auto* text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80", ":80",
                           "127.0.0.1:80x", "[::1:80", "a b:80", "example.org:80"}) {
    asio_rendezvous_server server{
        loop.context, loop.clock, loop.random, job_token::generate(loop.random), {.listen = text}};
    const auto started = server.start([](const join_offer&) { return expected<join_answer>{some_answer()}; });
    REQUIRE_FALSE(started);
    CHECK(started.failure().code == errc::bad_argument);
    CHECK(started.failure().text.find("--listen '" + std::string{text} + "'") == 0);
  }
  CHECK(parse_host_port("--listen", "[::1]:80")->host == "::1");
}

TEST_CASE("exchange: no damaged offer or frame is believed or ends the process (RV-2)") {
  const auto sound = encode_offer(some_offer());
  REQUIRE(decode_offer(sound));
  for (std::size_t bytes = 0; bytes < sound.size(); ++bytes)
    (void)decode_offer(std::span{sound}.first(bytes));
  for (std::size_t at = 0; at < sound.size(); ++at) {
    for (const auto value : {std::byte{0x00}, std::byte{0x7f}, std::byte{0xff}}) {
      auto damaged = sound;
      damaged[at] = value;
      (void)decode_offer(damaged);
      (void)decode_answer(damaged);
      (void)decode_frame(damaged);
    }
  }
  auto offer = some_offer();
  offer.host = "two\nlines";
  CHECK(decode_offer(encode_offer(offer)).failure().code == errc::refused);
  offer = some_offer();
  offer.program.assign(limits::name_bytes_max + 1, 'x');
  CHECK(decode_offer(encode_offer(offer)).failure().code == errc::refused);
}

TEST_CASE("exchange: a proof covers purpose, versions, nonces, what it answers to, and the body") {
  const wire_bytes body(10, std::byte{1});
  const proof_context context{.client_version = 1, .server_version = 1};
  const auto proof = prove("token-token-token", proof_purpose::offer, context, body);
  CHECK(same_proof(proof, prove("token-token-token", proof_purpose::offer, context, body)));
  CHECK_FALSE(same_proof(proof, prove("token-token-tokeN", proof_purpose::offer, context, body)));
  CHECK_FALSE(same_proof(proof, prove("token-token-token", proof_purpose::answer, context, body)));
  CHECK_FALSE(
      same_proof(proof, prove("token-token-token", proof_purpose::offer, context, std::span{body}.first(9))));
  for (int field = 0; field < 6; ++field) {
    auto other = context;
    if (field == 0) other.client_version = 2;
    if (field == 1) other.server_version = 2;
    if (field == 2) other.client[31] = std::byte{1};
    if (field == 3) other.server[0] = std::byte{1};
    if (field == 4) other.answers_to[5] = std::byte{1};
    if (field == 5) other.binding = wire_bytes(32);
    CHECK_FALSE(same_proof(proof, prove("token-token-token", proof_purpose::offer, other, body)));
  }
  CHECK_FALSE(same_proof(proof, std::span{proof}.first(31)));
}

TEST_CASE("exchange: the path secret is HKDF-SHA256 of the token, and another one for another job") {
  constexpr std::string_view token = "0123456789abcdef0123456789abcdef";
  const auto secret = derive_path_secret(token, {5, 6});
  std::string hex;
  for (const auto byte : secret.bytes())
    hex += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4],
        hex += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
  // Computed by Python's hmac: extract with the salt (5, 6), then expand with "troupe path secret" and 1.
  CHECK(hex == "fd2f6616481e34e5e7fabacf31a72235143c839741febdb86a8e09f4e219aebc");
  CHECK(secret.bytes() != derive_path_secret(token, {5, 7}).bytes());
  CHECK(secret.bytes() != derive_path_secret("0123456789abcdef0123456789abcdeF", {5, 6}).bytes());
}

TEST_CASE("exchange: numbers of an offer are bounded") {
  for (int field = 0; field < 5; ++field) {
    auto offer = some_offer();
    if (field == 0) offer.slot = -2;
    if (field == 1) offer.slot = limits::workers_max;
    if (field == 2) offer.slot = (std::int64_t{1} << 32) + 3; // another slot's number, were it cut to 32 bits
    if (field == 3) offer.pid = 0;
    if (field == 4) offer.pid = limits::rendezvous_pid_max + 1;
    CHECK(decode_offer(encode_offer(offer)).failure().code == errc::refused);
  }
}

TEST_CASE("token: read from a file or a descriptor, trimmed and bounded; errors name the source") {
  const auto path = std::filesystem::temp_directory_path() / ("troupe-token-" + std::to_string(::getpid()));
  const auto write = [&](const std::string& text) { std::ofstream{path} << text; };
  write("  0123456789abcdef0123\r\n");
  const auto token = job_token::from_file(path);
  REQUIRE(token);
  CHECK(token->text() == "0123456789abcdef0123");
  for (const std::string& bad : {std::string{}, std::string{"  \n"}, std::string(15, 'x'),
                                 std::string(1025, 'x'), std::string(100'000, 'x')}) {
    write(bad);
    const auto refused = job_token::from_file(path);
    REQUIRE_FALSE(refused);
    CHECK(refused.failure().code == errc::bad_argument);
    CHECK(refused.failure().text.find(path.string()) != std::string::npos);
    if (bad.size() == 15) CHECK(refused.failure().text.find(bad) == std::string::npos);
  }
  std::filesystem::remove(path);
  CHECK(job_token::from_file(path).failure().text.find("No such file") != std::string::npos);
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  REQUIRE(::write(ends[1], "0123456789abcdef\n", 17) == 17);
  ::close(ends[1]);
  CHECK(job_token::from_descriptor(ends[0])->text() == "0123456789abcdef");
  ::close(ends[0]);
  CHECK(job_token::from_descriptor(ends[0]).failure().text.find("token descriptor") == 0);
  asio_loop loop;
  CHECK(job_token::generate(loop.random).text().size() == 64);
}

} // namespace
} // namespace troupe::test
