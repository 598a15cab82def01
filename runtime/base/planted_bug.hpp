// Planted bug: a mistake that a test switches on, to see whether the checkers of the simulation find it.
//
//   if (TROUPE_PLANTED("catalog.newest_not_verified")) ...
//
// In a normal build nothing of it is left: the condition is `false`. `tests/known_bugs` compiles the sources
// that hold planted bugs once more, with TROUPE_PLANTED_BUGS, and switches one on at a time. In sources only:
// a header would be two things in one program.
// Why:      docs/design/0021-probes-and-planted-bugs.md
#pragma once

#ifndef TROUPE_PLANTED_BUGS

#define TROUPE_PLANTED(name) false

#else

#include <string_view>
#include <vector>

#include "runtime/base/fixed_text.hpp"

#define TROUPE_PLANTED(name) (::troupe::planted_bug<name>::on())

namespace troupe {

// In a chain with all others of the program. One thread, as the simulation.
class planted_bugs {
public:
  explicit planted_bugs(std::string_view name)
      : name_{name}
      , next_{last_} {
    last_ = this;
  }
  [[nodiscard]] bool on() const { return name_ == chosen_; }
  static void choose(std::string_view name) { chosen_ = name; } // empty: none; the text outlives it
  [[nodiscard]] static std::vector<std::string_view> names() {
    std::vector<std::string_view> all;
    for (const auto* one = last_; one != nullptr; one = one->next_)
      all.push_back(one->name_);
    return all;
  }

private:
  static constinit inline planted_bugs* last_{nullptr};
  static constinit inline std::string_view chosen_{};
  std::string_view name_;
  planted_bugs* next_;
};

template <fixed_text Name>
class planted_bug {
public:
  [[nodiscard]] static bool on() { return record_.on(); }

private:
  static inline planted_bugs record_{Name.text};
};

} // namespace troupe

#endif
