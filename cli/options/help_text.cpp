#include "cli/options/help_text.hpp"

#include "runtime/policy/nearest_name.hpp"

namespace troupe {
namespace {

std::string examples_of(const program_info& info) {
  std::string text = "Examples:\n";
  if (!info.examples.empty()) {
    for (const auto& example : info.examples)
      text += "  " + example + "\n";
    return text;
  }
  for (const auto* arguments :
       {"--epochs 2", "--workers 4 --steps 600 --checkpoint-dir ckpt",
        "--workers 3 --steps 600 --fault kill:worker=1@step=200 --summary summary.json",
        "--steps 600 --checkpoint-dir ckpt --resume none --seed 7"})
    text += "  " + info.name + " " + arguments + "\n";
  return text;
}

std::string injectable_names() {
  std::vector<std::string_view> names;
  for (const auto name : fault_names()) {
    const auto parsed = parse_fault(std::string{name} + "@step=1");
    if (parsed && check_injectable(*parsed)) names.push_back(name);
  }
  return listed(names);
}

} // namespace

std::string help_footer(const program_info& info) {
  return "Faults: KIND[:TARGET]@WHEN[,KEY=VALUE]...\n"
         "  KIND    " +
         injectable_names() +
         "\n"
         "  TARGET  worker=N|any|all, prefetcher=N|any|all, checkpoint=newest|STEP\n"
         "  WHEN    step=N, every=DURATION, after=DURATION\n"
         "  KEY     for=DURATION, code=N, times=N|always\n"
         "  kill:worker=1@step=40         worker 1 is killed as it enters step 40\n"
         "  stop:worker=2@step=60,for=5s  worker 2 is stopped for 5 seconds\n"
         "  kill:worker=any@every=30s     every 30 seconds some worker is killed\n"
         "\n"
         "Durations: 250ms, 5s, 2min.\n"
         "Exit codes: 0 finished, 2 usage, 3 restart budget spent, 4 too few workers, 5 bad data,\n"
         "  6 no loadable checkpoint, 7 refused, 70 a bug.\n"
         "\n" +
         examples_of(info);
}

} // namespace troupe
