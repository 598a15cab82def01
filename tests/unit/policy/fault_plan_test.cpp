#include "runtime/policy/fault_plan.hpp"

#include <set>

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

fault_plan plan_of(std::initializer_list<const char*> specs) {
  fault_plan plan;
  for (const auto* spec : specs)
    plan.push_back(parse_fault(spec).value());
  return plan;
}

fault_point worker_at(std::uint32_t rank, std::uint64_t step, std::uint32_t world = 4) {
  return {.role = fault_role::worker,
          .rank = rank_id{rank},
          .world = world,
          .previous = step_id{step - 1},
          .step = step_id{step},
          .elapsed = {},
          .seed = 1};
}

std::string refusal(std::string_view toml) {
  const auto parsed = parse_fault_plan(toml, "plan.toml");
  return parsed ? "accepted" : parsed.failure().text;
}

TEST_CASE("fault plan: a file says the same as specs") {
  const auto plan = parse_fault_plan(R"(# two kills and a stop
[[fault]]
kind = "kill"
target = "worker=1"
at = "step=40"

[[fault]]
kind = "stop"
target = "worker=2"
at = "step=60"
for = "5s"
times = 2

[[fault]]
spec = "slow:worker=0@step=10,factor=4,for=20s"

[[fault]]
kind = "exit"
at = "every=30s"
code = 3
)",
                                     "plan.toml");
  INFO((plan ? "" : plan.failure().text));
  REQUIRE(plan);
  CHECK(*plan == plan_of({"kill:worker=1@step=40", "stop:worker=2@step=60,for=5s,times=2",
                          "slow:worker=0@step=10,factor=4,for=20s", "exit@every=30s,code=3"}));
  CHECK(parse_fault_plan("", "plan.toml").value().empty());
}

TEST_CASE("fault plan: errors name file and line") {
  CHECK(refusal("[[fault]]\nkind = \"kil\"\nat = \"step=1\"\n")
            .starts_with("plan.toml:1: unknown kind 'kil' (did you mean kill?)"));
  CHECK(refusal("\n\n[[fault]]\nkind = \"kill\"\nwhen = \"step=1\"\n")
            .starts_with("plan.toml:5: unknown key 'when'"));
  CHECK(refusal("[[fault]]\nkind = [1]\nat = \"step=1\"\n").starts_with("plan.toml:2: kind: accepted"));
  CHECK(refusal("[[fault]]\nkind = \"kill@step=1,times=3\"\n").starts_with("plan.toml:2: kind: accepted"));
  CHECK(refusal("[[fault]]\nspec = \"kill@step=1\"\ncode = 1\n").starts_with("plan.toml:2: spec must be"));
  CHECK(refusal("[[faults]]\nkind = \"kill\"\n").starts_with("plan.toml:1: unknown key 'faults'"));
  CHECK(refusal("fault = 3\n").starts_with("plan.toml:1: fault must be"));
  CHECK(refusal("[[fault]]\nkind = kill\n").starts_with("plan.toml:2: "));
  std::string many;
  for (std::size_t i = 0; i <= plan_faults_max; ++i)
    many += "[[fault]]\nspec = \"kill@step=1\"\n";
  CHECK(refusal(many).starts_with("plan.toml:513: too many faults"));
}

TEST_CASE("fault plan: other characters than ASCII are for comments; elsewhere line and value are named") {
  const std::string mark = "\xef\xbb\xbf"; // as some editors begin a file
  const auto plan = parse_fault_plan(mark + "# zwei Ausf\xc3\xa4lle, \xe4\xb8\xa4\n[[fault]] # \xff\xfe\n"
                                            "spec = \"kill:worker=1@step=40\" # sp\xc3\xa4t\n",
                                     "plan.toml");
  INFO((plan ? "" : plan.failure().text));
  REQUIRE(plan);
  CHECK(*plan == plan_of({"kill:worker=1@step=40"}));
  CHECK(
      refusal("[[fault]]\n  kind = \xe2\x80\x9ckill\xe2\x80\x9d # typographic\n") ==
      "plan.toml:2: 'kind = ???kill??? # typographic': not ASCII; accepted: ASCII, and any text in comments");
  for (const auto* bad :
       {"\x80", "\xff\xff\xff\xff", "k\xc3", "[[fault]]\nspec = \"#\xf0\x9f\"\n", "\"\xed\xa0\x80\" = 1",
        "a = '#' # fine\nb = '\xc3\xa4'", "\xef\xbb", "x\xef\xbb\xbf"}) {
    const auto said = refusal(bad);
    CHECK(said.find("not ASCII; accepted: ASCII") != std::string::npos);
    CHECK(said.find('\n') == std::string::npos);
  }
  // Taken for a comment by mistake, inside a text of several lines: refused as what it has become.
  CHECK(refusal("[[fault]]\nspec = \"\"\"\nkill#\xc3\xa4\"\"\"\n").find("kill#??") != std::string::npos);
}

TEST_CASE("fault plan: a fault is due at its step, on its rank, once (FP-1, FP-3)") {
  const auto plan = plan_of({"kill:worker=1@step=40"});
  fired_faults fired;
  CHECK(due(plan, worker_at(1, 39), fired).empty());
  CHECK(due(plan, worker_at(0, 40), fired).empty());
  CHECK(due(plan, worker_at(1, 40), fired) == std::vector<std::size_t>{0});
  fired.mark(0, rank_id{1});
  CHECK(due(plan, worker_at(1, 40), fired).empty()); // the replacement redoes the step in peace
}

TEST_CASE("fault plan: times counts strikes, always never ends (FP-1)") {
  const auto plan = plan_of({"kill:worker=1@step=40,times=2", "throw:worker=1@step=40,times=always"});
  fired_faults fired;
  for (int i = 0; i < 2; ++i)
    fired.mark(0, rank_id{1});
  for (int i = 0; i < 9; ++i)
    fired.mark(1, rank_id{1});
  CHECK(due(plan, worker_at(1, 40), fired) == std::vector<std::size_t>{1});
}

TEST_CASE("fault plan: all strikes each rank once, whoever was struck first (FP-1)") {
  const auto plan = plan_of({"kill:worker=all@step=40"});
  fired_faults fired;
  fired.mark(0, rank_id{0});
  CHECK(due(plan, worker_at(0, 40), fired).empty());
  for (const auto rank : {1U, 2U, 3U})
    CHECK(due(plan, worker_at(rank, 40), fired).size() == 1);
}

TEST_CASE("fault plan: any strikes exactly one rank, and not always the same (FP-2)") {
  const auto plan = plan_of({"kill:worker=any@step=40,times=always"});
  fired_faults fired;
  std::set<std::uint32_t> victims;
  for (int strike = 0; strike < 40; ++strike) {
    std::vector<std::uint32_t> struck;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      if (!due(plan, worker_at(rank, 40), fired).empty()) struck.push_back(rank);
    }
    REQUIRE(struck.size() == 1);
    victims.insert(struck[0]);
    fired.mark(0, rank_id{struck[0]});
  }
  CHECK(victims.size() == 4);
}

TEST_CASE("fault plan: roles see their own faults only") {
  const auto plan =
      plan_of({"kill@step=5", "throw:prefetcher=0@step=5", "director-kill@step=5", "bit-flip@step=5"});
  const fired_faults fired;
  auto here = worker_at(0, 5, 1);
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{0});
  here.role = fault_role::prefetcher;
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{1});
  here.role = fault_role::director;
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{2});
  here.role = fault_role::checkpointer;
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{3});
}

TEST_CASE("fault plan: who sees only some steps does not miss one, nor fires for steps long past (FP-3)") {
  const auto plan = plan_of({"director-kill@step=50"});
  fault_point here{.role = fault_role::director, .rank = {}, .previous = step_id{41}, .step = step_id{57}};
  CHECK(due(plan, here, {}).size() == 1);
  here.previous = step_id{57};
  here.step = step_id{70};
  CHECK(due(plan, here, {}).empty());
}

TEST_CASE("fault plan: moments in time repeat or come once") {
  const auto plan = plan_of({"kill:worker=0@every=30s", "exit:worker=0@after=45s"});
  fired_faults fired;
  auto here = worker_at(0, 7);
  here.elapsed = 29s;
  CHECK(due(plan, here, fired).empty());
  here.elapsed = 31s;
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{0});
  fired.mark(0, rank_id{0});
  CHECK(due(plan, here, fired).empty());
  here.elapsed = 61s;
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{0, 1});
  fired.mark(1, rank_id{0});
  CHECK(due(plan, here, fired) == std::vector<std::size_t>{0});
}

TEST_CASE("fault plan: what has struck survives its text form, and damaged text is refused") {
  fired_faults fired;
  CHECK(fired_faults::decode(fired.encode()).value() == fired);
  fired.mark(3, rank_id{1});
  fired.mark(0, rank_id{2});
  fired.mark(3, rank_id{1});
  fired.mark(3, rank_id{0});
  CHECK(fired.encode() == "0/2/1 3/0/1 3/1/2");
  CHECK(fired_faults::decode(fired.encode()).value() == fired);
  CHECK(fired.total(3) == 3);
  for (const auto* bad : {"x", "1", "1/2", "1/2/", "1/2/3/4", "1/2/3 ", "3/1/1 3/1/1", "9999/1/1", "1/2/3x"})
    CHECK_FALSE(fired_faults::decode(bad));
}

TEST_CASE("fault plan: what two have seen strike is, of each fault and rank, the higher count (FP-1)") {
  fired_faults mine, told;
  mine.mark(0, rank_id{1});
  mine.mark(0, rank_id{1});
  told.mark(0, rank_id{1});
  told.mark(3, rank_id{0});
  mine.merge(told);
  CHECK(mine.on(0, rank_id{1}) == 2);
  CHECK(mine.on(3, rank_id{0}) == 1);
  mine.merge(told);
  CHECK(mine.encode() == "0/1/2 3/0/1");
}

} // namespace
} // namespace troupe
