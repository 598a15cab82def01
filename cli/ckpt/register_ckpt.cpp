#include <CLI/CLI.hpp>

#include "cli/ckpt/ckpt_command.hpp"

namespace troupe {
namespace {

CLI::App* add(CLI::App& ckpt, ckpt_options& into, const char* name, const char* text, ckpt_action action) {
  auto* command = ckpt.add_subcommand(name, text);
  command->add_option("DIR", into.directory, "checkpoint directory")->required();
  command->add_flag("--json", into.json, "one JSON object on standard output");
  command->callback([&into, action] { into.action = action; });
  return command;
}

} // namespace

CLI::App* register_ckpt(CLI::App& parent, ckpt_options& into) {
  auto* ckpt = parent.add_subcommand("ckpt", "looks at checkpoints");
  ckpt->require_subcommand(1);

  auto* ls = add(*ckpt, into, "ls", "lists the versions and whether they are whole", ckpt_action::ls);
  ls->add_flag("--quick", into.quick, "reads the manifests only");

  auto* show = add(*ckpt, into, "show", "shows one version and its tensors", ckpt_action::show);
  show->add_option("STEP", into.step, "step (the newest one)");

  auto* verify = add(*ckpt, into, "verify", "reads and digests every file", ckpt_action::verify);
  verify->add_option("STEP", into.step, "step (all of them)");

  auto* diff = add(*ckpt, into, "diff", "compares two versions tensor by tensor", ckpt_action::diff);
  diff->add_option("STEP_A", into.step, "step")->required();
  diff->add_option("STEP_B", into.other_step, "step")->required();
  return ckpt;
}

} // namespace troupe
