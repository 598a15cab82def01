#include "runtime/policy/silence_watch.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using who = std::vector<incarnation_id>;
constexpr incarnation_id a{1, 1};
constexpr incarnation_id b{1, 2};
const std::set<incarnation_id> both{a, b};

TEST_CASE("silence watch: who waits asks, and who answers is asked again and never silent (SL-1, SL-2)") {
  silence_watch watch{3};
  CHECK(watch.look(false, both).ask.empty());
  for (int round = 0; round < 20; ++round) {
    const auto seen = watch.look(true, both);
    CHECK(seen.ask == (round % 3 == 0 ? who{a, b} : who{}));
    CHECK(seen.silent.empty());
    if (round % 3 != 2) continue;
    watch.heard(a);
    watch.heard(b);
  }
}

TEST_CASE("silence watch: who does not answer is silent, once a wait (SL-3)") {
  silence_watch watch{3};
  CHECK(watch.look(true, both).ask == who{a, b});
  watch.heard(a);
  for (int look = 1; look <= 3; ++look)
    CHECK(watch.look(true, both).silent.empty());
  watch.heard(a);
  CHECK(watch.look(true, both).silent == who{b});
  watch.heard(a);
  CHECK(watch.look(true, both).silent.empty());
  CHECK(watch.look(false, both).silent.empty());
  CHECK(watch.look(true, both).ask == who{a, b}); // another wait
  for (int look = 1; look <= 3; ++look)
    CHECK(watch.look(true, both).silent.empty());
  CHECK(watch.look(true, both).silent == who{a, b});
}

TEST_CASE("silence watch: what is heard unasked means nothing") {
  silence_watch watch{1};
  watch.heard(a);
  CHECK(watch.look(true, both).ask == who{a, b});
}

} // namespace
} // namespace troupe
