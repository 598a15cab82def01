#include "cli/sim/coverage.hpp"

#include <ostream>

#include <nlohmann/json.hpp>

namespace troupe::sim {

std::vector<std::string_view> unreached_probes() {
  std::vector<std::string_view> names;
  for (const auto& one : probes()) {
    if (one.hits == 0) names.push_back(one.name);
  }
  return names;
}

void tell_coverage(std::ostream& out) {
  const auto all = probes();
  const auto unreached = unreached_probes();
  for (const auto& name : unreached)
    out << "not reached: " << name << "\n";
  for (const auto& one : all) {
    if (one.hits != 0) out << one.name << ": " << one.hits << "\n";
  }
  out << all.size() - unreached.size() << " of " << all.size() << " branches of recovery reached\n";
}

nlohmann::json coverage_json() {
  nlohmann::json reached = nlohmann::json::object();
  for (const auto& one : probes()) {
    if (one.hits != 0) reached[std::string{one.name}] = one.hits;
  }
  return {{"reached", reached}, {"unreached", unreached_probes()}};
}

} // namespace troupe::sim
