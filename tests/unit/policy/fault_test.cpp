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
        "cut:worker=1@after=1001ns,for=1us", "cut:worker=0@step=2,way=in", "disk-full@step=9",
        "clock-step:worker=any@step=2,for=1h", "torn-write@step=4"}) {
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
    const auto size = name == "clock-step" ? ",for=1s" : "";
    const auto parsed = parse_fault(std::string{name} + "@step=3" + size);
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

TEST_CASE("fault: what a kind does to its process, its seams and its job is known") {
  CHECK(ends_process(fault_kind::kill));
  CHECK_FALSE(ends_process(fault_kind::oom));
  CHECK(is_borne(fault_kind::slow));
  CHECK_FALSE(is_borne(fault_kind::hang_in_collective));
  CHECK(strikes_seam(fault_kind::nan));
  CHECK_FALSE(strikes_seam(fault_kind::stop));
  for (std::size_t i = 0; i < fault_names().size(); ++i) {
    const auto kind = static_cast<fault_kind>(i);
    CHECK_FALSE((ends_process(kind) && is_borne(kind)));
  }
}

TEST_CASE("fault: a clock's jump has a size, a torn write no step, a cut a way (FT-2)") {
  CHECK(refusal("clock-step@step=3") ==
        "clock-step: no for=; accepted: for=DURATION, how far the clock jumps");
  CHECK(refusal("torn-write:checkpoint=40@step=3") ==
        "torn-write: target 'checkpoint=40'; accepted: checkpoint=newest");
  CHECK(refusal("cut@step=3,way=up") == "way 'up'; accepted: both, in, out");
  CHECK(refusal("clog@step=3,way=in") == "clog: key 'way=in'; accepted: for, factor, times");
  CHECK(to_text(parse_fault("cut:worker=1@step=3,way=out,for=2s").value()) ==
        "cut:worker=1@step=3,for=2s,way=out");
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
