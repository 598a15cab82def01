// ring_bench [RANKS | NAMESPACE,DEVICE,ADDRESS]...: a table of all-reduces over the ring, against the
// transport under it; on this host, or each rank at a place of its own (between_namespaces.py).
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/collective/rank_measure.hpp"
#include "bench/collective/ring_measure.hpp"
#include "runtime/base/units.hpp"

namespace {

constexpr std::size_t sizes[] = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

std::uint32_t iterations_for(std::size_t bytes) {
  if (bytes <= 64 << 10) return 1000;
  return bytes <= 1 << 20 ? 200 : 20;
}

bool print(const troupe::expected<troupe::bench::timed_row>& measured) {
  if (!measured) {
    std::fprintf(stderr, "ring_bench: %s\n", measured.failure().text.c_str());
    return false;
  }
  std::printf("%-13s %5u %8s %10.1f %10.1f %10.1f %8.2f %8.2f\n", measured->system.c_str(), measured->ranks,
              troupe::format_size(measured->bytes).c_str(), measured->min_us, measured->p50_us,
              measured->p99_us, measured->algbw_gb_s(), measured->busbw_gb_s());
  return true;
}

} // namespace

int main(int argc, char** argv) {
  std::vector<std::uint32_t> worlds;
  std::vector<troupe::bench::network_place> places;
  for (int i = 1; i < argc; ++i) {
    if (auto place = troupe::bench::parse_network_place(argv[i]))
      places.push_back(*place);
    else
      worlds.push_back(static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  }
  if (!places.empty()) worlds = {static_cast<std::uint32_t>(places.size())};
  if (worlds.empty()) worlds = {2, 4};
  std::printf("%-13s %5s %8s %10s %10s %10s %8s %8s\n", "system", "ranks", "size", "min us", "p50 us",
              "p99 us", "alg GB/s", "bus GB/s");
  bool good = true;
  for (const auto bytes : sizes)
    for (const bool both_ways : {false, true})
      good = print(troupe::bench::measure_bulk(both_ways, bytes, iterations_for(bytes), places)) && good;
  for (const auto ranks : worlds)
    for (const auto bytes : sizes)
      good = print(troupe::bench::measure_ring(ranks, bytes, iterations_for(bytes), places)) && good;
  return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
