#include "cli/doctor/reduce_checks.hpp"

#include <algorithm>
#include <cstdio>

namespace troupe::doctor {
namespace {

std::string remedy_of(reduce_trouble what) {
  switch (what) {
  case reduce_trouble::wrong_value:
    return "do not train on this machine: test its memory and processors (memtester), and run this again";
  case reduce_trouble::memory:
    return "allow shared memory: memfd_create and its seals (seccomp filter of the container), /proc of this "
           "user, file size (ulimit -f), memory of the container or service";
  case reduce_trouble::late:
    return "free the processors of other work, and see that no process is stopped; then run this again";
  default:
    return "look at the lines above and at the limits of processes (ulimit -u), then run this again";
  }
}

std::string name_of(const pair_facts& pair) {
  return std::to_string(pair.one) + "-" + std::to_string(pair.other);
}

std::string in_gb(double bytes_per_s) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f", bytes_per_s / 1e9);
  return text;
}

} // namespace

finding judge_reduce(const doctor_facts& facts) {
  const auto& tried = facts.reduce;
  if (tried.trouble == reduce_trouble::none && !tried.pairs.empty()) {
    std::string text = std::to_string(tried.workers) + " workers, sums right; GB/s between";
    for (const auto& pair : tried.pairs)
      text += " " + name_of(pair) + " " + in_gb(pair.bytes_per_s) + ",";
    const auto slowest = std::ranges::min_element(tried.pairs, {}, &pair_facts::bytes_per_s);
    text += " slowest " + name_of(*slowest);
    if (slowest->bytes_per_s >= pair_bytes_per_s_usual) return {.text = text};
    return {{},
            verdict::warn,
            text + ", less than the usual " + in_gb(pair_bytes_per_s_usual),
            "free the processors of other work; steps wait for the slowest pair"};
  }
  const auto why = tried.failure.empty() ? "not tried" : tried.failure;
  return {{}, verdict::fail, "no sum in shared memory: " + why, remedy_of(tried.trouble)};
}

} // namespace troupe::doctor
