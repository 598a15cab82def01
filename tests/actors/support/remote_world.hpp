// Two processes of one driver, their post offices, and what an asking actor saw.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <catch2/catch_test_macros.hpp>

#include "actors/remote/codec_table.hpp"
#include "actors/remote/post_office.hpp"
#include "actors/system/actor_runtime.hpp"
#include "actors/system/errors.hpp"
#include "tests/actors/support/driver.hpp"
#include "tests/actors/support/network.hpp"

namespace troupe::test {

struct ping {
  static constexpr std::string_view wire_name = "test.ping";
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct pong {
  static constexpr std::string_view wire_name = "test.pong";
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct blob {
  static constexpr std::string_view wire_name = "test.blob";
  std::string bytes;
  void fields(auto& archive) { archive(bytes); }
};
struct order { // of one generation only
  static constexpr std::string_view wire_name = "test.order";
  static constexpr bool generation_bound = true;
  std::uint64_t value{0};
  void fields(auto& archive) { archive(value); }
};
struct stranger { // not in the table
  static constexpr std::string_view wire_name = "test.stranger";
};

inline codec_table make_codecs() {
  codec_table table;
  table.add<ping, pong, blob, order>();
  return table;
}

struct world {
  test::driver driver{3};
  test::network net;
  test::memory_log log;
  codec_table codecs = make_codecs();
};

struct process {
  process(world& w, std::uint64_t number, post_office_settings settings = {.job = {9, 9}})
      : net{w.net}
      , id{1, number}
      , loop{w.driver.make_executor()}
      , runtime{loop, w.driver, w.log}
      , endpoint{w.net.join(id, loop)}
      , office{runtime, *endpoint, w.codecs, settings} {}
  ~process() { net.leave(id); }

  test::network& net;
  incarnation_id id;
  executor& loop;
  actor_runtime runtime;
  std::unique_ptr<test::network::endpoint> endpoint;
  post_office office;
};

// Answers ping(n) with pong(n + 1); keeps silent at 0; fails at 13; ends at 99.
inline caf::behavior server(caf::event_based_actor* self) {
  auto kept = std::make_shared<std::vector<caf::response_promise>>();
  return {
      [=](const ping& what) -> caf::result<pong> {
        if (what.value == 13) throw actor_error{errc::device_failed, "device 0 is lost"};
        if (what.value == 0) {
          kept->push_back(self->make_response_promise());
          return caf::delegated<pong>{};
        }
        if (what.value == 99) self->quit();
        return pong{what.value + 1};
      },
      [](const blob& what) { return what; },
  };
}

// What an actor saw, for the tests to look at.
struct client_view {
  std::vector<std::uint64_t> answers;
  std::vector<error> failures;
  std::vector<error> downs;
  std::vector<undelivered> returned;
  std::vector<std::uint64_t> orders;
};

class client final : public caf::event_based_actor {
public:
  client(caf::actor_config& config, client_view& view)
      : event_based_actor{config}
      , view_{view} {
    set_down_handler([this](caf::down_msg& down) { view_.downs.push_back(to_troupe(down.reason)); });
  }
  caf::behavior make_behavior() override {
    return {
        [this](caf::actor target, std::uint64_t value) { // ask
          request(target, caf::infinite, ping{value})
              .then([this](const pong& answer) { view_.answers.push_back(answer.value); },
                    [this](caf::error& failure) { view_.failures.push_back(to_troupe(failure)); });
        },
        [this](caf::actor target, const blob& what) { send(target, what); },
        [this](caf::actor target, const order& what) { send(target, what); },
        [this](caf::actor target, const stranger& what) { send(target, what); },
        [this](caf::actor target) { monitor(target); },
        [this](caf::actor target, bool) { link_to(target); },
        [this](const undelivered& what) { view_.returned.push_back(what); },
        [this](const order& what) { view_.orders.push_back(what.value); },
        [](const pong&) {},
    };
  }

private:
  client_view& view_;
};

struct two_processes : world {
  std::unique_ptr<process> a = std::make_unique<process>(*this, 1);
  std::unique_ptr<process> b = std::make_unique<process>(*this, 2);
  client_view view;
  caf::actor asker = a->runtime.system().spawn<client>(view);
  caf::actor served = b->runtime.system().spawn(server);
  caf::actor far;

  two_processes() {
    REQUIRE(b->office.publish("server", served));
    driver.settle();
    far = a->office.remote(b->id, "server");
  }
  void ask(std::uint64_t value) {
    caf::anon_send(asker, far, value);
    driver.settle();
  }
  void watch() {
    caf::anon_send(asker, far);
    driver.settle();
  }
};

} // namespace troupe::test
