// Fuzz target: one decoder of foreign bytes, and valid inputs to begin with.
//
// Flow:     libFuzzer, or replay_main with corpus and mutations -> `run` -> decoder
// Fails:    a crash, a sanitizer's report, or `require`: the process ends, and the input is the finding.
// A target is a function of its input alone: no clock, no randomness, no state from one input to the next.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::fuzz {

using input = std::span<const std::byte>;
using bytes = std::vector<std::byte>;

struct target {
  std::string_view name; // of its folder under tests/fuzz/corpus
  void (*run)(input given);
  std::vector<bytes> (*seeds)(); // valid encodings, in an order that does not change
  std::size_t mutations;         // of a replay: fewer where one input costs more
};

// What must hold whatever the input was.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
  std::abort();
}

[[nodiscard]] inline bytes bytes_of(std::string_view text) {
  const auto view = std::as_bytes(std::span{text.data(), text.size()});
  return {view.begin(), view.end()};
}
[[nodiscard]] inline bytes bytes_of(input view) {
  return {view.begin(), view.end()};
}
[[nodiscard]] inline std::string text_of(input view) {
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

// Targets that take several things begin with one byte that chooses.
[[nodiscard]] inline unsigned take_choice(input& given, unsigned choices) {
  if (given.empty()) return 0;
  const auto choice = std::to_integer<unsigned>(given.front()) % choices;
  given = given.subspan(1);
  return choice;
}
[[nodiscard]] inline bytes chosen(unsigned choice, input content) {
  bytes made{static_cast<std::byte>(choice)};
  made.insert(made.end(), content.begin(), content.end());
  return made;
}

} // namespace troupe::fuzz
