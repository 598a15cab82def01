#include <bit>
#include <stdexcept>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "runtime/train/parameter_store.hpp"
#include "runtime/train/state_digest.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 2> two_slots{"mean", "variance"};

initializer counting(float from) {
  return [from](std::uint64_t index) { return from + static_cast<float>(index); };
}

void declare_two(parameter_store& store) {
  (void)store.declare("first", {3, 7}, counting(1.0F));
  (void)store.declare("second", {5}, counting(100.0F));
}

std::string refusal(parameter_store& store, std::string name, std::vector<std::size_t> shape) {
  try {
    (void)store.declare(std::move(name), std::move(shape), model_context::zeros());
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return {};
}

TEST_CASE("parameter store: parameters start at multiples of 16, padding is zero (PA-1)") {
  parameter_store store{1};
  declare_two(store);
  store.freeze(two_slots);
  const auto& layout = store.layout();
  CHECK(layout.parameters[0].offset == 0);
  CHECK(layout.parameters[1].offset == 32);
  CHECK(layout.part_elements == 48);
  CHECK(layout.elements() == 144);
  CHECK(store.values(parameter{0})[20] == 21.0F);
  CHECK(store.values(parameter{1})[0] == 100.0F);
  for (std::size_t i = 21; i < 32; ++i)
    CHECK(store.arena()[i] == 0.0F);
  CHECK(store.slot(0).data() == store.arena().data() + 48);
  CHECK(store.slot(1).size() == 48);
  CHECK(reinterpret_cast<std::uintptr_t>(store.arena().data()) % 64 == 0);
}

TEST_CASE("parameter store: nothing is declared after freeze (PA-2)") {
  parameter_store store{1};
  declare_two(store);
  store.freeze({});
  CHECK(refusal(store, "late", {1}).find("'late'") != std::string::npos);
  CHECK_THROWS_AS(store.freeze({}), std::invalid_argument);
}

TEST_CASE("parameter store: a bad declaration is named") {
  parameter_store store{1};
  declare_two(store);
  CHECK(refusal(store, "first", {1}) == "parameter 'first': declared twice");
  CHECK(refusal(store, "", {1}) == "a parameter needs a name");
  CHECK(refusal(store, "flat", {}) == "parameter 'flat': the shape is empty");
  CHECK(refusal(store, "none", {4, 0}).find("[4,0]") != std::string::npos);
  CHECK(refusal(store, "huge", {1UL << 40, 1UL << 40}).find("too large") != std::string::npos);
  parameter_store empty{1};
  CHECK_THROWS_AS(empty.freeze({}), std::invalid_argument);
}

TEST_CASE("parameter store: initial values depend on seed, name and index only (PA-3)") {
  const parameter_store a{5};
  const parameter_store b{5};
  const parameter_store c{6};
  const auto of_a = a.uniform("w", 0.5F);
  CHECK(of_a(17) == b.uniform("w", 0.5F)(17));
  CHECK(of_a(17) != c.uniform("w", 0.5F)(17));
  CHECK(of_a(17) != a.uniform("v", 0.5F)(17));
  float least = 1;
  float most = -1;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    least = std::min(least, of_a(i));
    most = std::max(most, of_a(i));
  }
  CHECK(least >= -0.5F);
  CHECK(least < -0.49F);
  CHECK(most < 0.5F);
  CHECK(most > 0.49F);
}

TEST_CASE("parameter store: initialise returns to the state after freeze") {
  parameter_store store{1};
  declare_two(store);
  store.freeze(two_slots);
  const auto before = store.weights_digest();
  std::ranges::fill(store.arena(), 3.0F);
  CHECK(store.weights_digest() != before);
  store.initialise();
  CHECK(store.weights_digest() == before);
  CHECK(store.slot(1)[0] == 0.0F);
}

TEST_CASE("weights digest: covers the parameters in declared order, without padding and slots") {
  parameter_store store{1};
  declare_two(store);
  store.freeze(two_slots);
  std::vector<float> plain;
  for (const auto p : {parameter{0}, parameter{1}})
    plain.insert(plain.end(), store.values(p).begin(), store.values(p).end());
  CHECK(store.weights_digest() == digest_of(std::as_bytes(std::span{plain})));
  store.arena()[31] = 1.0F; // padding
  store.slot(0)[0] = 1.0F;
  CHECK(store.weights_digest() == digest_of(std::as_bytes(std::span{plain})));
}

TEST_CASE("state digest: is the digest of the bytes that its header lists") {
  parameter_store store{1};
  (void)store.declare("only", {2}, counting(1.0F));
  store.freeze(std::array<std::string_view, 1>{"momentum"});
  store.slot(0)[1] = 0.5F;
  std::string bytes;
  const auto number = [&bytes](std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes += static_cast<char>(value >> (8 * i));
  };
  for (const float value : {1.0F, 2.0F, 0.0F, 0.5F})
    number(std::bit_cast<std::uint32_t>(value), 4);
  number(3, 4);
  bytes += "sgd";
  number(2, 4);
  bytes += "lr";
  number(600, 8);
  number(76800, 8);
  CHECK(state_digest(store.layout(), store.arena(), "sgd", "lr", {600, 76800}) ==
        digest_of(std::as_bytes(std::span{bytes})));
}

TEST_CASE("layout fingerprint: tells programs apart whose arenas mean something else") {
  const auto fingerprint = [](std::string name, std::vector<std::size_t> shape, std::string_view slot) {
    parameter_store store{1};
    (void)store.declare(std::move(name), std::move(shape), model_context::zeros());
    store.freeze(std::array{slot});
    return store.layout().fingerprint();
  };
  const auto one = fingerprint("w", {4, 6}, "momentum");
  CHECK(fingerprint("w", {4, 6}, "momentum") == one);
  CHECK(fingerprint("v", {4, 6}, "momentum") != one);
  CHECK(fingerprint("w", {6, 4}, "momentum") != one);
  CHECK(fingerprint("w", {4, 6}, "mean") != one);
}

} // namespace
} // namespace troupe
