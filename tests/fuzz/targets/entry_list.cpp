// Lists of entries, as peers send them in sums.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "runtime/policy/entry_list.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

constexpr std::array<std::size_t, 4> sizes{1, 8, 200, 70'000};

bytes packed(const std::vector<float>& values) {
  bytes made(values.size() * sizeof(float));
  made.resize(pack_entries(values, made.data()));
  return made;
}

void run(input given) {
  const auto size = sizes[take_choice(given, sizes.size())];
  std::vector<float> values(size), again(size);
  if (!unpack_entries(given, values)) return;
  require(unpack_entries(packed(values), again), "what is packed is unpacked");
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  require(std::ranges::equal(values, again, {}, bits, bits), "the values are the same");
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (unsigned choice = 0; choice < sizes.size(); ++choice)
    for (const std::size_t distance : {1U, 7U, 500U}) {
      if (distance == 1 && sizes[choice] > 200) continue; // all values: too long for a seed
      std::vector<float> values(sizes[choice]);
      for (std::size_t i = 0; i < values.size() && i < 100 * distance; i += distance)
        values[i] = static_cast<float>(i + 1);
      made.push_back(chosen(choice, packed(values)));
    }
  return made;
}

} // namespace

const target entry_list_target{"entry_list", run, seeds, 20'000};

} // namespace troupe::fuzz
