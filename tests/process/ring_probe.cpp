// Ring probe: one rank of a few sums over the ring, in a process of its own; or the same sums in memory.
//
// Usage:    ring_probe shm ELEMENTS                  prints the digest of the sums
//           ring_probe ring DEVICE RANK ELEMENTS     prints "INCARNATION ADDRESS"; reads two such lines, of
//                                                    ranks 0 and 1; prints the digest; ends at end of input
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "runtime/base/digest.hpp"
#include "tests/support/peer_process.hpp"
#include "tests/support/ring_process.hpp"
#include "tests/unit/collective/reference.hpp"
#include "transports/shm/shm_collective.hpp"

namespace troupe::test {
namespace {

constexpr std::uint64_t steps = 5;

int sum(communicator& member, const collective_shape& shape, std::uint32_t rank) {
  digest_builder digest;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    reference::contribute(member, shape, rank, reference::shards_at(step, shape.shards, shape.elements));
    bool good = false;
    member.all_reduce([&](const expected<reduction>& done) {
      good = done.has_value();
      if (good) digest.add(std::as_bytes(done.value().sum));
    });
    if (!good) return EXIT_FAILURE;
  }
  std::cout << digest.finish() << std::endl; // flushed: a script waits for it
  return EXIT_SUCCESS;
}

int sum_in_memory(std::size_t elements) {
  const collective_shape shape{generation_id{1}, 1, 8, elements};
  shm_collective here;
  const auto member = here.connect(here.prepare(shape).value(), shape, rank_id{0});
  return sum(*member.value(), shape, 0);
}

int sum_over_ring(const std::string& device, std::uint32_t rank, std::size_t elements) {
  ring_process here{{}, {.devices = device}};
  const auto own = here.who();
  std::cout << to_string(own.incarnation) << ' ' << hex_of(own.address) << std::endl;
  collective_shape shape{generation_id{1}, 2, 8, elements};
  for (int each = 0; each < 2; ++each) {
    std::string who;
    std::string address;
    if (!(std::cin >> who >> address)) return EXIT_FAILURE;
    shape.members.push_back({incarnation_of(who), address_of(address)});
  }
  auto member = here.connect(here.ring().prepare(shape).value(), shape, rank);
  const auto result = member ? sum(**member, shape, rank) : EXIT_FAILURE;
  for (std::string rest; std::cin >> rest;) {
  } // the other may still need this process
  return result;
}

} // namespace
} // namespace troupe::test

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const auto number = [&](int at) { return std::strtoull(argv[at], nullptr, 10); };
  if (mode == "shm" && argc == 3) return troupe::test::sum_in_memory(number(2));
  if (mode == "ring" && argc == 5)
    return troupe::test::sum_over_ring(argv[2], static_cast<std::uint32_t>(number(3)), number(4));
  std::fputs("ring_probe: see its source\n", stderr);
  return 2;
}
