#include <algorithm>
#include <csignal>
#include <optional>

#include <catch2/catch_test_macros.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/limits.hpp"
#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_entropy.hpp"
#include "runtime/host/host_identity.hpp"
#include "runtime/host/secret_fd.hpp"
#include "runtime/host/signal_watcher.hpp"
#include "runtime/host/spdlog_sink.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST_CASE("secret: reads back once, through any descriptor of it, and cannot be changed") {
  auto made = make_secret_fd("a token");
  REQUIRE(made);
  CHECK((::fcntl(made->get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(::write(made->get(), "x", 1) < 0);
  const int second = ::fcntl(made->get(), F_DUPFD_CLOEXEC, 3);
  CHECK(read_secret_fd(second).value() == "a token");
  CHECK(::fcntl(second, F_GETFD) < 0);
  CHECK(read_secret_fd(made->release()).value() == "a token");
}

TEST_CASE("secret: what is no secret is refused") {
  CHECK_FALSE(make_secret_fd(""));
  CHECK_FALSE(make_secret_fd(std::string(secret_bytes_max + 1, 'x')));
  const unique_fd other{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  for (const int fd : {-1, 0, 2, 999, other.get()})
    CHECK(read_secret_fd(fd).failure().code == errc::bad_argument);
  CHECK(::fcntl(other.get(), F_GETFD) >= 0);
}

TEST_CASE("signal watcher: a signal becomes a call on the loop, each time; afterwards it has its default") {
  event_loop loop;
  int seen = 0;
  {
    const signal_watcher watcher{loop, {SIGUSR1, SIGUSR2}, [&](int number) { seen += number; }};
    ::raise(SIGUSR1);
    REQUIRE(loop.run_until([&] { return seen == SIGUSR1; }, 10s));
    ::raise(SIGUSR2);
    REQUIRE(loop.run_until([&] { return seen == SIGUSR1 + SIGUSR2; }, 10s));
  }
  struct sigaction now {};
  ::sigaction(SIGUSR1, nullptr, &now);
  CHECK(now.sa_handler == SIG_DFL);
}

TEST_CASE("entropy: numbers differ; the wall clock has a form") {
  host_entropy source;
  CHECK(source.next() != source.next());
  const auto text = wall_clock_text();
  CHECK(text.size() == 20);
  CHECK(text.back() == 'Z');
}

TEST_CASE("host identity: one of this boot, namespace and user; short and printable") {
  const auto here = host_identity();
  CHECK(here == host_identity());
  CHECK(here.size() <= limits::name_bytes_max);
  CHECK(std::ranges::count(here, '/') == 2);
  CHECK(here.ends_with("/" + std::to_string(::geteuid())));
  CHECK(std::ranges::all_of(here, [](unsigned char c) { return c >= 0x20 && c < 0x7f; }));
}

TEST_CASE("log level: reads the four names and refuses others by name") {
  CHECK(parse_log_level("warning").value() == log_level::warning);
  const auto wrong = parse_log_level("loud");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.failure().text.find("'loud'") != std::string::npos);
}

TEST_CASE("log sink: braces in a text are only text") {
  spdlog_sink sink{log_level::error, "test"};
  sink.write(log_level::info, "host", "below the level {}");
  sink.write(log_level::error, "host", "{} is printed as it stands");
}

} // namespace
} // namespace troupe
