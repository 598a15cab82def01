// Faults: SPEC (FT-1), plan files, and what has fired, as text.
#include "runtime/policy/fault_plan.hpp"

#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  const auto choice = take_choice(given, 3);
  const auto text = text_of(given);
  if (choice == 0) {
    const auto spec = parse_fault(text);
    if (!spec) return;
    const auto again = parse_fault(to_text(*spec));
    require(again && *again == *spec, "FT-1: to_text of a fault parses back to the same fault");
  } else if (choice == 1) {
    const auto plan = parse_fault_plan(text, "plan.toml");
    require(!plan || plan->size() <= plan_faults_max, "a plan is bounded");
  } else {
    const auto fired = fired_faults::decode(text);
    if (!fired) return;
    const auto again = fired_faults::decode(fired->encode());
    require(again && *again == *fired, "what has fired is written and read alike");
  }
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (const auto* spec :
       {"kill:worker=1@step=40", "stop:worker=2@step=60,for=5s", "slow:worker=0@step=10,factor=4,for=20s",
        "throw:prefetcher=1@step=30", "bit-flip:checkpoint=newest@step=80", "director-kill@step=50",
        "kill:worker=any@every=30s", "cut:worker=1@after=2s,for=1s,way=in",
        "exit:worker@step=3,code=9,times=2"})
    made.push_back(chosen(0, bytes_of(spec)));
  made.push_back(chosen(1, bytes_of("[[fault]]\nkind = \"kill\"\ntarget = \"worker=1\"\nat = \"step=40\"\n\n"
                                    "[[fault]]\nspec = \"stop:worker=2@step=60,for=5s\"\n")));
  fired_faults fired;
  fired.mark(0, rank_id{1});
  fired.mark(3, rank_id{0});
  fired.mark(3, rank_id{0});
  made.push_back(chosen(2, bytes_of(fired.encode())));
  return made;
}

} // namespace

const target faults_target{"faults", run, seeds, 4000};

} // namespace troupe::fuzz
