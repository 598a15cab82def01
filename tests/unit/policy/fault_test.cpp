#include "runtime/policy/fault.hpp"

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using place = fault_target::place;
using choice = fault_target::choice;

std::string refusal(std::string_view spec) {
  const auto parsed = parse_fault(spec);
  if (parsed) return "accepted";
  CHECK(parsed.failure().code == errc::bad_argument);
  CHECK(parsed.failure().text.find('\n') == std::string::npos);
  return parsed.failure().text;
}

TEST_CASE("fault: the contract's examples say what they mean") {
  const auto kill = parse_fault("kill:worker=1@step=40").value();
  CHECK(kill == fault{.kind = fault_kind::kill,
                      .target = {place::worker, choice::one, 1},
                      .when = {fault_moment::kind::step, step_id{40}, {}}});
  const auto stop = parse_fault("stop:worker=2@step=60,for=5s").value();
  CHECK(stop.lasting == 5s);
  const auto slow = parse_fault("slow:worker=0@step=10,factor=4,for=20s").value();
  CHECK(slow.factor == 4.0);
  CHECK(slow.lasting == 20s);
  CHECK(parse_fault("throw:prefetcher=1@step=30").value().target ==
        fault_target{place::prefetcher, choice::one, 1});
  CHECK(parse_fault("bit-flip:checkpoint=newest@step=80").value().target.which == choice::newest);
  CHECK(parse_fault("director-kill@step=50").value().target == fault_target{});
  const auto random = parse_fault("kill:worker=any@every=30s").value();
  CHECK(random.when.time == 30s);
  CHECK(random.times == fault::always);
}

TEST_CASE("fault: what is not given has a default") {
  CHECK(parse_fault("kill@step=1").value().target == fault_target{place::worker, choice::any, 0});
  CHECK(parse_fault("throw:worker@step=1").value().target == fault_target{place::worker, choice::any, 0});
  CHECK(parse_fault("bit-flip@step=1").value().target == fault_target{place::checkpoint, choice::newest, 0});
  CHECK(parse_fault("kill@step=1").value().times == 1);
  CHECK(parse_fault("kill@every=1s,times=3").value().times == 3);
  CHECK(parse_fault("exit:worker=0@step=1,code=3,times=always").value().code == 3);
}

TEST_CASE("fault: text parses back to the same fault (FT-1)") {
  for (const auto* spec :
       {"kill:worker=1@step=40", "kill:worker=all@step=40", "stop:worker=2@step=60,for=5s",
        "slow:worker=0@step=10,for=20s,factor=4.25", "throw:prefetcher=any@step=30,times=always",
        "bit-flip:checkpoint=newest@step=80", "bit-flip:checkpoint=200@after=90s", "director-kill@step=50",
        "kill:worker=any@every=1500ms", "kill:worker=any@every=2min,times=3", "exit:worker=1@step=2,code=7",
        "cut:worker=1@after=1001ns,for=1us", "disk-full@step=9"}) {
    const auto parsed = parse_fault(spec);
    INFO(spec << (parsed ? "" : parsed.failure().text));
    REQUIRE(parsed);
    CHECK(parse_fault(to_text(*parsed)).value() == *parsed);
  }
  CHECK(to_text(parse_fault("slow:worker=0@step=10,factor=4,for=20s").value()) ==
        "slow:worker=0@step=10,for=20s,factor=4");
  CHECK(to_text(parse_fault("kill@every=1.5s").value()) == "kill:worker=any@every=1500ms");
}

TEST_CASE("fault: every kind of the design is a known name") {
  CHECK(fault_names().size() == 19);
  for (const auto name : fault_names()) {
    const auto parsed = parse_fault(std::string{name} + "@step=3");
    REQUIRE(parsed);
    CHECK(to_string(parsed->kind) == name);
  }
}

TEST_CASE("fault: an unknown kind is answered with the nearest name and all known ones") {
  const auto text = refusal("kil:worker=1@step=40");
  CHECK(text.starts_with("unknown kind 'kil' (did you mean kill?); accepted: kill, segv, exit, throw, stop"));
  CHECK(text.ends_with("director-kill"));
  CHECK(refusal("explode@step=1").starts_with("unknown kind 'explode'; accepted: kill"));
}

TEST_CASE("fault: a kind that real processes cannot suffer yet is refused in one line") {
  const auto refused = check_injectable(parse_fault("cut:worker=1@step=3").value());
  REQUIRE_FALSE(refused);
  CHECK(refused.failure().text == "cut is known, but not supported yet on real processes; supported: kill, "
                                  "segv, exit, throw, stop, bit-flip, director-kill");
  CHECK(check_injectable(parse_fault("kill@step=3").value()));
}

TEST_CASE("fault: a wrong target, moment or key is named with what is accepted (FT-2)") {
  CHECK(refusal("kill:prefetcher=1@step=3") == "kill: target 'prefetcher=1'; accepted: worker=N|any|all");
  CHECK(refusal("kill:worker=9999@step=3").starts_with("kill: target 'worker=9999'"));
  CHECK(refusal("kill:worker=-1@step=3").starts_with("kill: target"));
  CHECK(refusal("kill:worker=@step=3").starts_with("kill: target"));
  CHECK(refusal("bit-flip:checkpoint=all@step=3").find("checkpoint=newest|STEP") != std::string::npos);
  CHECK(refusal("director-kill:worker=1@step=3").find("no target") != std::string::npos);
  CHECK(refusal("kill:worker=1").starts_with("no moment given"));
  CHECK(refusal("kill@step=0").starts_with("step '0'"));
  CHECK(refusal("kill@step=4x").starts_with("step '4x'"));
  CHECK(refusal("kill@40").starts_with("moment '40'"));
  CHECK(refusal("kill@every=0s").starts_with("every '0s'"));
  CHECK(refusal("kill@after=soon").starts_with("after 'soon'"));
  CHECK(refusal("kill@step=4,for=5s") == "kill: key 'for=5s'; accepted: times");
  CHECK(refusal("stop@step=4,for=x").starts_with("for 'x'"));
  CHECK(refusal("slow@step=4,factor=0.5").starts_with("factor '0.5'"));
  CHECK(refusal("exit@step=4,code=256").starts_with("code '256'"));
  CHECK(refusal("kill@step=4,times=0").starts_with("times '0'"));
  CHECK(refusal("kill@after=4s,times=2").starts_with("times '2' with after="));
  CHECK(refusal("kill@step=4,").starts_with("kill: key ''"));
  CHECK(refusal("").starts_with("unknown kind ''"));
}

} // namespace
} // namespace troupe
