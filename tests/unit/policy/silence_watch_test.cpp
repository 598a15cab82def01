#include "runtime/policy/silence_watch.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using who = std::vector<incarnation_id>;
constexpr incarnation_id a{1, 1};
constexpr incarnation_id b{1, 2};
const std::set<incarnation_id> both{a, b};

// Of one that hears its director.
silence_watch::outcome look(silence_watch& watch, bool waits, const std::set<incarnation_id>& peers) {
  watch.heard_director();
  return watch.look(waits, peers);
}

TEST_CASE("silence watch: who waits asks, and who answers is asked again and never silent (SL-1, SL-2)") {
  silence_watch watch{3};
  CHECK(look(watch, false, both).ask.empty());
  for (int round = 0; round < 20; ++round) {
    const auto seen = look(watch, true, both);
    CHECK(seen.ask == (round % 3 == 0 ? who{a, b} : who{}));
    CHECK(seen.silent.empty());
    if (round % 3 != 2) continue;
    watch.heard(a);
    watch.heard(b);
  }
}

TEST_CASE("silence watch: who does not answer is silent, once a wait (SL-3)") {
  silence_watch watch{3};
  CHECK(look(watch, true, both).ask == who{a, b});
  watch.heard(a);
  for (int i = 1; i <= 3; ++i)
    CHECK(look(watch, true, both).silent.empty());
  watch.heard(a);
  CHECK(look(watch, true, both).silent == who{b});
  watch.heard(a);
  CHECK(look(watch, true, both).silent.empty());
  CHECK(look(watch, false, both).silent.empty());
  CHECK(look(watch, true, both).ask == who{a, b}); // another wait
  for (int i = 1; i <= 3; ++i)
    CHECK(look(watch, true, both).silent.empty());
  CHECK(look(watch, true, both).silent == who{a, b});
}

TEST_CASE("silence watch: who does not hear its director asks and blames nobody (SL-4)") {
  silence_watch watch{4};
  CHECK(watch.look(true, both).ask == who{a, b});
  CHECK(watch.look(true, both).silent.empty());
  CHECK(watch.hears_director());
  for (int i = 0; i < 10; ++i) {
    const auto seen = watch.look(true, both);
    CHECK_FALSE(watch.hears_director());
    CHECK(seen.ask.empty());
    CHECK(seen.silent.empty());
  }
  CHECK(look(watch, true, both).ask == who{a, b}); // what was asked before counts no more
  CHECK(watch.hears_director());
  for (int i = 1; i <= 4; ++i)
    CHECK(look(watch, true, both).silent.empty());
  CHECK(look(watch, true, both).silent == who{a, b});
}

TEST_CASE("silence watch: what is heard unasked means nothing") {
  silence_watch watch{2};
  watch.heard(a);
  CHECK(look(watch, true, both).ask == who{a, b});
}

} // namespace
} // namespace troupe
