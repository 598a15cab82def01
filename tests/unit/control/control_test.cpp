#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/wire/control.hpp"

namespace troupe::wire {
namespace {

prepare_generation sample_prepare() {
  prepare_generation m;
  m.generation = generation_id{7};
  m.rank = rank_id{1};
  m.members = {{incarnation_id{1, 2}, {std::byte{9}, std::byte{8}}, 0}, {incarnation_id{3, 4}, {}, 1}};
  m.step = step_id{200};
  m.source = state_source::peer;
  m.source_rank = rank_id{0};
  m.collective = "shm:1:2";
  m.fired_faults = "0@1";
  return m;
}

TEST_CASE("control: what is encoded is what is decoded") {
  const auto bytes = encode(sample_prepare());
  const auto back = decode(bytes);
  REQUIRE(back);
  const auto& m = std::get<prepare_generation>(*back);
  CHECK(m.generation == generation_id{7});
  CHECK(m.members[0].incarnation == incarnation_id{1, 2});
  CHECK(m.members[0].address == std::vector<std::byte>{std::byte{9}, std::byte{8}});
  CHECK(m.source == state_source::peer);
  CHECK(m.collective == "shm:1:2");
  CHECK(m.fired_faults == "0@1");
}

TEST_CASE("control: every kind of message keeps its kind") {
  const std::vector<control> all{
      worker_ready{3, 42, "cpu"},
      heartbeat{generation_id{1}, 5, step_id{4}},
      generation_prepared{generation_id{1}, step_id{4}, state_source::keep},
      prepare_failed{generation_id{1}, {errc::corrupt, "digest"}},
      generation_stopped{generation_id{1}, step_id{4}, true},
      actor_failed{generation_id{1}, "worker", 4, "boom", false, 12, errc::out_of_memory},
      first_step{generation_id{1}, step_id{5}},
      step_report{generation_id{1}, step_id{5}, 5, 0.5, duration{7}, 2.3, false},
      checkpoint_report{generation_id{1}, checkpoint_outcome::written, step_id{5}, 10},
      worker_finished{generation_id{1}, step_id{9}, "aa", "bb"},
      sample_prepare(),
      start_generation{generation_id{2}},
      end_generation{generation_id{2}, "killed"},
      stop_worker{"done"},
      director_heartbeat{generation_id{2}, "0/1/1"},
      state_request{generation_id{2}, step_id{5}},
      state_offer{generation_id{2}, step_id{5}, 1024, "cc"},
      state_refused{generation_id{2}, "no"},
      step_refused{generation_id{2}, step_id{6}, true},
      fault_struck{3},
      peer_unreachable{generation_id{2}, incarnation_id{4, 5}, "ended"}};
  REQUIRE(all.size() == std::variant_size_v<control>);
  for (const auto& message : all) {
    const auto back = decode(encode(message));
    REQUIRE(back);
    CHECK(name_of(*back) == name_of(message));
  }
}

TEST_CASE("control: a failure's code and text survive the way") {
  const auto back = decode(encode(prepare_failed{generation_id{1}, {errc::storage_full, "disk"}}));
  REQUIRE(back);
  CHECK(std::get<prepare_failed>(*back).cause.code == errc::storage_full);
  CHECK(std::get<prepare_failed>(*back).cause.text == "disk");
}

TEST_CASE("control: who arrived where, why an actor failed and whose sum was refused survive the way") {
  const auto beat = decode(encode(
      heartbeat{.generation = generation_id{1}, .arrivals = 77, .call = 3, .call_number = UINT64_MAX}));
  REQUIRE(beat);
  CHECK(std::get<heartbeat>(*beat).arrivals == 77);
  CHECK(std::get<heartbeat>(*beat).call == 3);
  CHECK(std::get<heartbeat>(*beat).call_number == UINT64_MAX);
  CHECK_FALSE(decode(encode(heartbeat{.generation = generation_id{1}, .call = 200})));
  const auto failed = decode(encode(actor_failed{.actor = "worker", .code = errc::out_of_memory}));
  REQUIRE(failed);
  CHECK(std::get<actor_failed>(*failed).code == errc::out_of_memory);
  const auto refused = decode(encode(step_refused{generation_id{2}, step_id{6}, true}));
  REQUIRE(refused);
  CHECK(std::get<step_refused>(*refused).step == step_id{6});
  CHECK(std::get<step_refused>(*refused).ours);
}

TEST_CASE("control: who cannot be reached, when and why survives the way") {
  const auto back = decode(encode(peer_unreachable{generation_id{7}, incarnation_id{4, 5}, "ended"}));
  REQUIRE(back);
  const auto& told = std::get<peer_unreachable>(*back);
  CHECK(told.generation == generation_id{7});
  CHECK(told.who == incarnation_id{4, 5});
  CHECK(told.text == "ended");
}

TEST_CASE("control: histograms survive the way") {
  worker_finished m{generation_id{1}, step_id{9}, "aa", "bb"};
  m.step = step_id{9};
  m.stall = {{1, 7}, {3, 4}, duration{99}};
  const auto back = decode(encode(m));
  REQUIRE(back);
  CHECK(std::get<worker_finished>(*back).stall.counts == std::vector<std::uint64_t>{3, 4});
  CHECK(std::get<worker_finished>(*back).stall.max == duration{99});
}

TEST_CASE("control: out-of-range values are refused, with the reason") {
  auto wrong = sample_prepare();
  wrong.rank = rank_id{2};
  const auto back = decode(encode(wrong));
  REQUIRE_FALSE(back);
  CHECK(back.failure().code == errc::corrupt);
  CHECK(back.failure().text.find("rank") != std::string::npos);
  wrong = sample_prepare();
  wrong.members.clear();
  CHECK_FALSE(decode(encode(wrong)));
}

TEST_CASE("control: damaged bytes are refused or decode to a valid message, never anything else") {
  const counter_rng random{1, 2};
  const auto good = encode(sample_prepare());
  std::uint64_t refused = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    auto bytes = good;
    const auto draw = random.block(i);
    bytes[draw[0] % bytes.size()] ^= static_cast<std::byte>(1U << (draw[1] % 8));
    bytes[draw[2] % bytes.size()] ^= static_cast<std::byte>(draw[3] & 0xffU);
    if (!decode(bytes)) ++refused;
  }
  CHECK(refused > 1000);
  CHECK_FALSE(decode({}));
  CHECK_FALSE(decode(std::span{good}.subspan(0, good.size() - 8)));
}

} // namespace
} // namespace troupe::wire
