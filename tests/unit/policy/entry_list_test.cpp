#include <bit>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/entry_list.hpp"
#include "runtime/policy/wire_format.hpp"

namespace troupe {
namespace {

// About one of `rarity` is an entry: any bits, NaNs and -0 too.
std::vector<float> some_values(std::size_t size, std::uint32_t rarity, std::uint64_t seed) {
  const counter_rng random{seed, 3};
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto drawn = random.block(i);
    if (drawn[0] % rarity == 0) values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(drawn[1]));
    if (drawn[0] % 1000 == 1) values[i] = -0.0F;
  }
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const auto value : values)
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

std::vector<std::byte> packed(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  bytes.resize(pack_entries(values, bytes.data()));
  return bytes;
}

TEST_CASE("entry list: gives back every value to the bit, in no more bytes than all of them (EL-1, EL-2)") {
  for (const std::size_t size : {1U, 2U, 3U, 16U, 127U, 1000U, 70'000U})
    for (const std::uint32_t rarity : {1U, 2U, 5U, 20U, 100U, 3000U, 1'000'000U}) {
      const auto values = some_values(size, rarity, size + rarity);
      const auto bytes = packed(values);
      CHECK((!bytes.empty() && bytes.size() <= size * sizeof(float)));
      std::vector<float> back(size, 7.0F);
      REQUIRE(unpack_entries(bytes, back));
      CHECK(bits_of(back) == bits_of(values));
    }
  CHECK(packed({}).empty());
  CHECK(packed(std::vector<float>(1000)).size() == 1);
}

TEST_CASE("entry list: takes no more than it is said to (EL-2)") {
  for (const std::size_t size : {1U, 100U, 5000U, 70'000U})
    for (std::size_t entries = 0; entries <= size; entries += 1 + size / 50) {
      std::vector<float> values(size);
      for (std::size_t i = 0; i < entries; ++i)
        values[i * (size / entries)] = 1.0F;
      CHECK(packed(values).size() <= list_bytes_max(size, entries));
    }
  CHECK(list_bytes_max(100'000, 1000) == 2 + 1000 * 7);
  CHECK(list_bytes_max(100'000, 90'000) == 400'000);
}

TEST_CASE("entry list: cut short, or any bytes at all, are refused or are values (EL-3)") {
  const auto values = some_values(500, 50, 1);
  const auto bytes = packed(values);
  std::vector<float> back(500);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(unpack_entries(std::span{bytes}.first(size), back));
  auto longer = bytes;
  longer.push_back(std::byte{0});
  CHECK_FALSE(unpack_entries(longer, back));
  const counter_rng random{8, 9};
  std::uint64_t drawn = 0;
  std::size_t taken = 0;
  for (std::size_t round = 0; round < 20'000; ++round) {
    std::vector<std::byte> any(random.block(drawn++)[0] % 40);
    for (auto& one : any)
      one = static_cast<std::byte>(random.block(drawn++)[0] % 4 == 0 ? random.block(drawn)[1] : 1);
    std::vector<float> into(8);
    taken += unpack_entries(any, into) ? 1U : 0U;
  }
  CHECK(taken > 0);
}

TEST_CASE("wire format: where few entries are kept, values travel as lists (WF-2, WF-3)") {
  const wire_format format{collective_shape{.elements = 1016, .wire_elements = 1000, .kept = 20}};
  CHECK((format.exact() && format.packs() && format.lists()));
  CHECK_FALSE(wire_format{collective_shape{.elements = 1016, .wire_elements = 1000}}.packs());
  const auto values = some_values(1016, 50, 2);
  std::vector<std::byte> bytes(format.bytes({0, 1016}));
  const auto used = format.pack(values, 0, bytes.data());
  CHECK(used < bytes.size() / 5);
  std::vector<float> back(1016);
  REQUIRE(format.unpack(std::span{bytes}.first(used), 0, back));
  CHECK(bits_of(back) == bits_of(values));
}

} // namespace
} // namespace troupe
