// Addresses, durations, sizes and --resume: texts of the command line.
#include "runtime/base/units.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "runtime/policy/job_settings.hpp"
#include "tests/fuzz/targets.hpp"
#include "transports/rendezvous/listen_address.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  const auto choice = take_choice(given, 5);
  const auto text = text_of(given);
  if (choice == 0) {
    const auto parsed = parse_host_port("--listen", text);
    require(!parsed || !parsed->host.empty(), "an address has a host");
  } else if (choice == 1) {
    const auto parsed = parse_duration(text);
    if (parsed) (void)format_duration(*parsed);
  } else if (choice == 2) {
    const auto parsed = parse_size(text);
    if (parsed) (void)format_size(*parsed);
  } else if (choice == 3) {
    const auto parsed = parse_resume(text);
    require(!parsed || parse_resume(to_text(*parsed)) == parsed, "a choice is written and read alike");
  } else {
    const auto parsed = parse_version_name(text);
    require(!parsed || parsed->state != version_state::whole || whole_name(parsed->step) == text,
            "a version has one name");
  }
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  const auto add = [&made](unsigned choice, std::string_view text) {
    made.push_back(chosen(choice, bytes_of(text)));
  };
  for (const auto* text : {"127.0.0.1:4100", "[::1]:0", "localhost:65535"})
    add(0, text);
  for (const auto* text : {"250ms", "1.5s", "2min", "9223372036854775807ns", "1e300h"})
    add(1, text);
  for (const auto* text : {"64KiB", "1MiB", "17179869184GiB"})
    add(2, text);
  for (const auto* text : {"auto", "none", "18446744073709551615"})
    add(3, text);
  add(4, whole_name(step_id{200}));
  add(4, marked_name(version_state::partial, step_id{200}, {1, 2}));
  return made;
}

} // namespace

const target addresses_target{"addresses", run, seeds, 6000};

} // namespace troupe::fuzz
