#include "cli/doctor/environment_checks.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace troupe::doctor {
namespace {

constexpr std::array<std::string_view, 10> launcher_variables{
    "RANK",        "WORLD_SIZE",   "LOCAL_RANK",   "LOCAL_WORLD_SIZE", "MASTER_ADDR",
    "MASTER_PORT", "SLURM_NNODES", "SLURM_NTASKS", "SLURM_PROCID",     "NNODES"};
constexpr std::array<std::string_view, 2> choose_lanes{"UCX_TLS", "UCX_NET_DEVICES"};
// They change what UCX says or how it ends, not how it sends.
constexpr std::array<std::string_view, 5> harmless{"UCX_LOG_LEVEL", "UCX_LOG_FILE", "UCX_HANDLE_ERRORS",
                                                   "UCX_MEM_EVENTS", "UCX_WARN_UNUSED_ENV_VARS"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const std::string* find(const doctor_facts& facts, const std::string& name) {
  const auto found = facts.environment.find(name);
  return found == facts.environment.end() ? nullptr : &found->second;
}

std::optional<long> number(const std::string& text) {
  long value = 0;
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
}

std::optional<long> number_of(const doctor_facts& facts, const std::string& name) {
  const auto* text = find(facts, name);
  return text == nullptr ? std::nullopt : number(*text);
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// Several hosts: a launcher says so, or there are more processes than on this host.
bool several_hosts(const doctor_facts& facts) {
  for (const auto* name : {"SLURM_NNODES", "NNODES"})
    if (number_of(facts, name).value_or(1) > 1) return true;
  const auto world = number_of(facts, "WORLD_SIZE");
  const auto local = number_of(facts, "LOCAL_WORLD_SIZE");
  return world && local && *world > *local;
}

// What is wrong with a place among others; empty: nothing.
std::string wrong_place(const doctor_facts& facts, const std::string& place, const std::string& size) {
  const auto* has_place = find(facts, place);
  const auto* has_size = find(facts, size);
  for (const auto& [name, text] : {std::pair{place, has_place}, std::pair{size, has_size}})
    if (text != nullptr && !number(*text)) return name + "=" + *text + " is not a number";
  if (has_place != nullptr && has_size == nullptr) return place + " is set, " + size + " is not";
  if (has_place == nullptr || has_size == nullptr) return {};
  const auto at = *number(*has_place);
  const auto of = *number(*has_size);
  if (at >= 0 && at < of) return {};
  return place + "=" + *has_place + " is not within " + size + "=" + *has_size;
}

} // namespace

bool of_interest(std::string_view variable) {
  return variable.starts_with("UCX_") || among(launcher_variables, variable);
}

finding judge_ucx_environment(const doctor_facts& facts) {
  std::string lanes;
  std::string others;
  for (const auto& [name, value] : facts.environment) {
    if (!name.starts_with("UCX_") || among(harmless, name)) continue;
    auto& list = among(choose_lanes, name) ? lanes : others;
    list += (list.empty() ? "" : ", ") + name + "=" + value;
  }
  if (lanes.empty() && others.empty()) return {.text = "no variable changes how UCX sends"};
  if (others.empty())
    return {{},
            verdict::warn,
            lanes + ": other programs obey it, Troupe chooses its lanes itself",
            "unset it; choose Troupe's lanes with --transport"};
  return {{},
          verdict::warn,
          (lanes.empty() ? "" : lanes + ", ") + others + ": not tried with Troupe's paths",
          "unset them"};
}

finding judge_master_address(const doctor_facts& facts) {
  const auto* address = find(facts, "MASTER_ADDR");
  if (address == nullptr) return {.text = "MASTER_ADDR is not set; --join names the director"};
  if (is_loopback(*address) && several_hosts(facts))
    return {{},
            verdict::warn,
            "MASTER_ADDR=" + *address + " is this host alone, but there are several hosts",
            "set it to an address of the first host that the others reach"};
  return {.text = "MASTER_ADDR=" + *address};
}

finding judge_ranks(const doctor_facts& facts) {
  auto wrong = wrong_place(facts, "RANK", "WORLD_SIZE");
  if (wrong.empty()) wrong = wrong_place(facts, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  const auto tasks = number_of(facts, "SLURM_NTASKS");
  const auto world = number_of(facts, "WORLD_SIZE");
  if (wrong.empty() && tasks && world && *tasks != *world)
    wrong = "WORLD_SIZE=" + std::to_string(*world) + ", but SLURM_NTASKS=" + std::to_string(*tasks);
  if (!wrong.empty())
    return {
        {}, verdict::fail, wrong, "unset them, or start with troupe run, torchrun or srun, which set all"};
  if (!world) return {.text = "RANK and WORLD_SIZE are not set; Troupe gives out ranks itself"};
  const auto rank = number_of(facts, "RANK");
  return {.text = (rank ? "rank " + std::to_string(*rank) + " of " : "a world of ") + std::to_string(*world)};
}

} // namespace troupe::doctor
