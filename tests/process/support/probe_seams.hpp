// Probe seams: the outside of a small process of the fault tests: real loop, clock and UCX, and a way to
// talk to the harness that started it.
//
// Flow:     commands, one a line, on standard input -> handler; reports, one JSON object a line, on
//           standard output. An end of standard input is the command "quit": nobody is left who would end it.
// Owns:     loop, clock, entropy, transport. One a process.
// Runs on:  the event loop.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <istream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/host_entropy.hpp"
#include "runtime/host/spdlog_sink.hpp"
#include "runtime/seams/entropy.hpp"
#include "tests/support/peer_process.hpp"
#include "transports/ucx/lanes.hpp"
#include "transports/ucx/ucx_transport.hpp"

namespace troupe::test {

using probe_words = std::vector<std::string>;

class probe_seams {
public:
  using command_handler = std::function<void(const probe_words&)>;

  // The lanes: "tcp" or "shm" (transports/ucx/lanes.hpp).
  probe_seams(const std::string& lanes, const std::string& devices, duration handshake)
      : self_{random_id_from<incarnation_id>(random)} {
    auto settings = settings_for(lanes);
    settings.devices = devices;
    settings.handshake_timeout = handshake;
    auto opened = ucx_transport::open(loop.io(), clock, self_, settings);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.failure().text.c_str());
      std::exit(2);
    }
    network = std::move(*opened);
    network->set_job(peer_job, peer_secret);
  }

  void introduce() {
    report({{"event", "ready"},
            {"incarnation", to_string(self_)},
            {"address", hex_of(network->local_address())},
            {"pid", ::getpid()}});
  }
  void listen(command_handler handler) {
    handler_ = std::move(handler);
    read();
  }
  // `t`: milliseconds of the host's monotonic clock, the same for all processes of it.
  void report(nlohmann::json what) {
    what["t"] = to_ms(clock.now().time_since_epoch());
    const auto line = what.dump() + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }

  event_loop loop;
  host_clock clock{loop};
  host_entropy random;
  spdlog_sink log{log_level::error};
  std::unique_ptr<ucx_transport> network;

private:
  void read() {
    boost::asio::async_read_until(input_, buffer_, '\n',
                                  [this](const boost::system::error_code& failed, std::size_t) {
                                    if (failed) return handler_({"quit"});
                                    std::istream lines{&buffer_};
                                    std::string line;
                                    std::getline(lines, line);
                                    std::istringstream words{line};
                                    using word = std::istream_iterator<std::string>;
                                    handler_(probe_words{word{words}, word{}});
                                    read();
                                  });
  }
  incarnation_id self_;
  command_handler handler_;
  boost::asio::posix::stream_descriptor input_{loop.io(), ::dup(STDIN_FILENO)};
  boost::asio::streambuf buffer_;
};

} // namespace troupe::test
