// Two processes of a messaging world that know each other, and what an actor of the first one saw.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/support/messaging_world.hpp"
#include "tests/actors/support/remote_world.hpp"

namespace troupe::test {

// Runs the test once over each world; the section's name is the world's.
template <class Body>
void in_every_world(Body body) {
  for (const auto& kind : messaging_worlds()) {
    DYNAMIC_SECTION(kind.name) {
      const auto codecs = make_codecs();
      const auto world = kind.make(codecs);
      body(*world);
    }
  }
}

// Ends the section, visibly, where the transport itself does not tell of a death.
inline void needs_told_deaths(const messaging_world& world) {
  if (!world.tells_of_death())
    SKIP("shared memory: UCX 1.13 does not tell of a death; only a verdict does, which other "
         "cases show");
}

inline void serve(messaging_process& where, const std::string& name) {
  auto& actor = where.keep(where.runtime().system().spawn(server));
  REQUIRE(where.office().publish(name, actor));
}
// An actor that keeps what it gets in `view`, published under `name`.
inline void listen(messaging_process& where, const std::string& name, client_view& view) {
  auto& actor = where.keep(where.runtime().system().spawn<client>(view));
  REQUIRE(where.office().publish(name, actor));
}

struct messaging_pair {
  explicit messaging_pair(messaging_world& in, const post_office_settings& of_a = {.job = world_job},
                          const post_office_settings& of_b = {.job = world_job})
      : world{in}
      , a{in.start(of_a)}
      , b{in.start(of_b)} {
    serve(b, "server");
    REQUIRE(messaging_world::connect(a, b));
    asker = &a.keep(a.runtime().system().spawn<client>(view));
    far = &a.keep(a.office().remote(b.id(), "server"));
    a.office().set_path_lost_handler(
        [this](incarnation_id, const error& cause) { suspicions.push_back(cause); });
    ask(41);
    wait([&] { return !view.answers.empty(); });
    REQUIRE(view.answers == std::vector<std::uint64_t>{42});
    view.answers.clear();
  }

  void wait(const std::function<bool()>& happened) const { REQUIRE(world.run_until(happened)); }
  void ask(std::uint64_t value) const { caf::anon_send(*asker, *far, value); }
  template <class T>
  void tell(const caf::actor& whom, T what) const {
    caf::anon_send(*asker, whom, std::move(what));
  }
  void watch() const { caf::anon_send(*asker, *far); }
  void ask_and_see_arrive(std::uint64_t value) const {
    const auto before = b.office().counters().received;
    ask(value);
    wait([&] { return b.office().counters().received > before; });
  }
  // Asks, again where a full path refuses it: all that was sent before has been handled at both ends.
  [[nodiscard]] bool answers_again() const {
    const auto before = view.answers.size();
    auto refused = view.failures.size();
    ask(1);
    return world.run_until([&] {
      if (view.failures.size() > refused) {
        refused = view.failures.size();
        ask(1);
      }
      return view.answers.size() > before;
    });
  }
  // Everything that waited for the asker has been handled: a refusal, at once, of this process itself.
  void settle_asker() {
    const auto before = view.failures.size();
    caf::anon_send(*asker, a.office().remote(a.id(), "nobody here"), std::uint64_t{1});
    wait([&] { return view.failures.size() > before; });
    view.failures.pop_back();
  }

  messaging_world& world;
  messaging_process& a;
  messaging_process& b;
  client_view view;
  std::vector<error> suspicions; // paths lost, as the office of `a` was told
  caf::actor* asker{nullptr};
  caf::actor* far{nullptr};
};

} // namespace troupe::test
