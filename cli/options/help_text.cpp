#include "cli/options/help_text.hpp"

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

// All kinds of faults, in lines that a terminal shows whole.
std::string kind_lines() {
  constexpr std::size_t columns = 100;
  const std::string indent(10, ' ');
  std::string text;
  std::size_t line = indent.size();
  for (const auto name : fault_names()) {
    if (!text.empty()) text += line + name.size() > columns ? ",\n" + indent : ", ";
    line = (text.ends_with(indent) ? indent.size() : line + 2) + name.size();
    text += name;
  }
  return text;
}

} // namespace

std::string help_footer(const program_info& info) {
  return "Faults: KIND[:TARGET]@WHEN[,KEY=VALUE]...\n"
         "  KIND    " +
         kind_lines() +
         "\n"
         "  TARGET  worker=N|any|all, prefetcher=N|any|all, checkpoint=newest|STEP\n"
         "  WHEN    step=N, every=DURATION, after=DURATION\n"
         "  KEY     for=DURATION, factor=NUMBER, code=N, way=in|out|both, times=N|always\n"
         "  kill:worker=1@step=40         worker 1 is killed as it enters step 40\n"
         "  stop:worker=2@step=60,for=5s  worker 2 is stopped for 5 seconds\n"
         "  kill:worker=any@every=30s     every 30 seconds some worker is killed\n"
         "  slow:worker=0@step=10,factor=4,for=20s   worker 0 takes four times as long\n"
         "\n"
         "Durations: 250ms, 5s, 2min.\n"
         "Exit codes: 0 finished, 2 usage, 3 restart budget spent, 4 too few workers, 5 bad data,\n"
         "  6 no loadable checkpoint, 7 refused, 70 a bug.\n"
         "\n" +
         examples_of(info);
}

} // namespace troupe
