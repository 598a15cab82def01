// Credit on an edge: a slow receiver slows its own sender, and nobody else (PO-7).
#include <numeric>
#include <vector>

#include "tests/actors/support/remote_world.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::uint64_t window = 4;
const post_office_settings small{.job = {9, 9}, .edge_messages_max = window};

struct go_on {
  static constexpr std::string_view wire_name = "test.go_on";
};

// Handles a message when it is told to.
class slow_sink final : public caf::event_based_actor {
public:
  slow_sink(caf::actor_config& config, std::vector<std::uint64_t>& got)
      : event_based_actor{config}
      , got_{got} {}
  caf::behavior make_behavior() override { return waiting(); }

private:
  caf::behavior waiting() {
    set_default_handler(caf::skip);
    return {[this](go_on) { become(caf::keep_behavior, taking()); }};
  }
  caf::behavior taking() {
    return {[this](const order& what) {
      got_.push_back(what.value);
      unbecome();
    }};
  }
  std::vector<std::uint64_t>& got_;
};

// Sends as long as there is credit, and waits for more.
class source final : public caf::event_based_actor {
public:
  source(caf::actor_config& config, post_office& office, std::uint64_t count, std::size_t& returned)
      : event_based_actor{config}
      , office_{office}
      , count_{count}
      , returned_{returned} {}
  caf::behavior make_behavior() override {
    return {[this](const caf::actor& to) { pump(to); }, [this](const edge_ready& ready) { pump(ready.edge); },
            [this](const undelivered&) { ++returned_; }};
  }

private:
  void pump(const caf::actor& to) {
    for (; next_ < count_ && office_.credit(to) > 0; ++next_)
      send(to, order{next_});
    if (next_ < count_) office_.when_ready(to, this);
  }
  post_office& office_;
  std::uint64_t count_;
  std::size_t& returned_;
  std::uint64_t next_{0};
};

struct edge : world {
  process a{*this, 1, small};
  process b{*this, 2, small};
  std::vector<std::uint64_t> got;
  caf::actor sink = b.runtime.system().spawn<slow_sink>(got);
  caf::actor far;
  edge() {
    REQUIRE(b.office.publish("sink", sink));
    far = a.office.remote(b.id, "sink");
    driver.settle();
  }
  void handle_one() {
    caf::anon_send(sink, go_on{});
    driver.settle();
  }
};

} // namespace

TEST_CASE("remote credit: beyond the window a message comes back at once (PO-7)", "[remote]") {
  edge t;
  client_view view;
  auto asker = t.a.runtime.system().spawn<client>(view);
  for (std::uint64_t i = 0; i < 7; ++i)
    caf::anon_send(asker, t.far, order{i});
  t.driver.settle();
  CHECK(view.returned.size() == 7 - window);
  CHECK(view.returned.front().cause.code == errc::no_credit);
  CHECK(t.a.office.credit(t.far) == 0);

  client_view other_view; // another edge of the same two processes is not slowed
  auto other = t.b.runtime.system().spawn<client>(other_view);
  REQUIRE(t.b.office.publish("other", other));
  auto far_other = t.a.office.remote(t.b.id, "other");
  caf::anon_send(asker, far_other, order{99});
  t.driver.settle();
  CHECK(other_view.orders == std::vector<std::uint64_t>{99});
}

TEST_CASE("remote credit: a sender that waits for credit loses nothing, and the order is kept (PO-7)",
          "[remote]") {
  edge t;
  std::size_t returned = 0;
  auto from = t.a.runtime.system().spawn<source>(t.a.office, 50, returned);
  caf::anon_send(from, t.far);
  t.driver.settle();
  CHECK(t.got.empty());
  for (int i = 0; i < 50; ++i) {
    t.handle_one();
    const auto under_way = t.a.office.counters().sent;
    CHECK(under_way <= t.got.size() + window + 8); // and a few envelopes of the office's own
  }
  std::vector<std::uint64_t> want(50);
  std::iota(want.begin(), want.end(), 0);
  CHECK(t.got == want);
  CHECK(returned == 0);
}

TEST_CASE("remote credit: who waits for credit of an edge that ends is told", "[remote]") {
  edge t;
  std::size_t returned = 0;
  auto from = t.a.runtime.system().spawn<source>(t.a.office, 50, returned);
  caf::anon_send(from, t.far);
  t.driver.settle();
  caf::anon_send_exit(t.sink, caf::exit_reason::kill);
  t.driver.settle();
  CHECK(t.got.empty());
  CHECK(returned > 0); // it went on, and learned that the actor has ended
}

TEST_CASE("remote credit: what is sent without credit is refused where it arrives (PO-7)", "[remote]") {
  edge t;
  process c{t, 3}; // another idea of the window
  client_view view;
  auto asker = c.runtime.system().spawn<client>(view);
  auto far = c.office.remote(t.b.id, "sink");
  for (std::uint64_t i = 0; i < 7; ++i)
    caf::anon_send(asker, far, order{i});
  t.driver.settle();
  CHECK(view.returned.size() == 7 - window);
}
