#include "cli/doctor/doctor_command.hpp"

#include <ostream>

#include <CLI/CLI.hpp>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/doctor/doctor_probe.hpp"
#include "cli/doctor/reduce_checks.hpp"
#include "cli/doctor/reduce_probe.hpp"
#include "runtime/policy/job_settings.hpp"

namespace troupe {

CLI::App* register_doctor(CLI::App& parent, doctor_options& into) {
  auto* app = parent.add_subcommand("doctor", "looks at this machine before a job does");
  app->add_option("--transport", into.transport, "what jobs will use between processes (tcp)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"tcp", "shm"}));
  app->add_option("--workers", into.workers, "processes that sum known values in shared memory (2)")
      ->type_name("N")
      ->check(CLI::Range(2U, doctor::reduce_workers_max));
  app->add_option("--device", into.device, "cpu, or cuda:N if jobs will sum on GPUs (cpu)")
      ->type_name("DEVICE")
      ->check([](const std::string& text) {
        return text == "cpu" || gpu_of(text) ? "" : "'" + text + "' is no device; accepted: cpu, cuda:N";
      });
  app->add_option("--data", into.data, "folder of the Fashion-MNIST files")->type_name("DIR");
  app->add_flag("--json", into.json, "one JSON object on standard output");
  app->add_option("--peer", into.peer)->group("");
  app->add_option("--probe", into.probe)->group("");
  app->footer("\nEach check is a line: ok, warn or FAIL, and the remedy. Two processes of the tool exchange "
              "messages meanwhile,\nand those of --workers sum values in shared memory.\nExit code: 1 if a "
              "check fails, else 0.");
  return app;
}

int run_doctor(const doctor_options& options, std::ostream& out) {
  if (options.peer >= 0 && options.probe == "all-reduce") return doctor::answer_reduce_probe(options.peer);
  if (options.peer >= 0) return doctor::answer_path_probe(options.transport, options.peer);
  const auto findings = doctor::examine(
      doctor::probe_machine({options.transport, options.workers, options.data, options.device}));
  out << (options.json ? doctor::to_json(findings) + "\n" : doctor::to_text(findings)) << std::flush;
  return doctor::healthy(findings) ? 0 : 1;
}

} // namespace troupe
