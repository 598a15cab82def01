#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "transports/ucx/lanes.hpp"

namespace troupe {
namespace {

constexpr auto tcp_printed = R"(#
# UCP endpoint
#
#               peer: host:4711
#                 lane[0]:  0:tcp/lo.0 md[0]                -> md[0]/tcp/sysdev[255] am am_bw#0 wireup
#
#                tag_send: 0..<egr/short>..8185..<egr/bcopy>..262144..<rndv>..(inf)
#
)";

constexpr auto mixed_printed = R"(#
#                 lane[0]:  0:sysv/memory.0 md[0]           -> md[0]/sysv/sysdev[255] amo#0 am am_bw#0
#                 lane[1]:  1:posix/memory.0 md[1]          -> md[1]/posix/sysdev[255] amo#1
#                 lane[2]: 14:tcp/eth0.1 md[2]              -> md[2]/tcp/sysdev[255] rma_bw#0 wireup
#                 lane[3]: 15:tcp/eth0.2 md[2]              -> md[2]/tcp/sysdev[255] rma_bw#1
)";

TEST_CASE("lanes: what UCX prints of an endpoint becomes transport/device, in order, each once") {
  CHECK(parse_lanes(tcp_printed) == std::vector<std::string>{"tcp/lo"});
  CHECK(parse_lanes(mixed_printed) == std::vector<std::string>{"sysv/memory", "posix/memory", "tcp/eth0"});
  CHECK(short_lanes(tcp_printed) == "tcp/lo");
  CHECK(short_lanes(mixed_printed) == "sysv/memory+posix/memory+tcp/eth0");
}

TEST_CASE("lanes: a device may have a dot and a slashless word is no lane") {
  CHECK(parse_lanes("lane[0]:  3:tcp/eth0.100.0 md[0]") == std::vector<std::string>{"tcp/eth0.100"});
  CHECK(parse_lanes("lane[0]:  3:proxy md[0]").empty());
}

TEST_CASE("lanes: text without lanes, cut off or foreign, gives none") {
  for (const std::string_view text :
       {"", "lane[", "lane[0]", "lane[0]:", "lane[0]:   ", "no endpoint\n", "lane[0]:\nlane["})
    CHECK(parse_lanes(text).empty());
  const std::string whole{mixed_printed};
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK(parse_lanes(std::string_view{whole}.substr(0, length)).size() <= 4); // the last word may be cut off
}

TEST_CASE("lanes: what UCX could use is read from what it prints of a context") {
  CHECK(parse_resources("#     component 1  :  tcp\n"
                        "#      resource 1  :  md 1  dev 1  flags -- tcp/lo\n"
                        "#      resource 3  :  md 2  dev 3  flags -- sysv/memory\n"
                        "#      resource 4  :  md") == std::vector<std::string>{"tcp/lo", "sysv/memory"});
  CHECK(parse_resources("").empty());
  const auto real = ucx_resources();
  CHECK(std::ranges::find(real, "tcp/lo") != real.end());
}

TEST_CASE("lanes: shm is tcp and the memory of the host, told to handle errors") {
  CHECK(settings_for("tcp").transports == "tcp");
  CHECK(settings_for("tcp").options.empty());
  const auto shm = settings_for("shm");
  CHECK(shm.transports == "sysv,posix,tcp");
  CHECK(shm.options.size() == 1);
  CHECK(shm.devices == "lo");
  CHECK(shm_warning().find("UCX " + ucx_version()) != std::string::npos);
  CHECK(shm_warning().find('\n') == std::string::npos);
  CHECK(events_warning().empty()); // linked into a program
}

} // namespace
} // namespace troupe
