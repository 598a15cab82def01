#include "transports/ucx/lanes.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <ucp/api/ucp.h>

#include "transports/ucx/event_order.hpp"

namespace troupe {

ucx_settings settings_for(lane_choice choice) {
  ucx_settings settings;
  if (choice == lane_choice::tcp) return settings;
  settings.transports = "sysv,posix,tcp";
  settings.options = {{"MM_ERROR_HANDLING", "y"}}; // what sysv and posix inherit
  return settings;
}

ucx_settings settings_for(std::string_view choice) {
  return settings_for(choice == "shm" ? lane_choice::shm : lane_choice::tcp);
}

std::string ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

std::string shm_warning() {
  return "--transport shm: the fault matrix has not passed with the shared memory of UCX " + ucx_version() +
         ": after a restart a healthy peer may be lost; accepted without that: --transport tcp";
}

std::string events_warning() {
  if (events_apart()) return {};
  return "UCX " + ucx_version() +
         " may crash when a connection is cut in the middle of bulk: this program's own "
         "ucs_event_set_wait is not what UCX calls; link Troupe into the program, or preload the library "
         "that has it";
}

// A line reads `#   lane[0]:  4:tcp/lo.0 md[3]   -> md[3]/tcp/sysdev[255] am am_bw#0 wireup`.
std::vector<std::string> parse_lanes(std::string_view printed) {
  std::vector<std::string> lanes;
  for (auto at = printed.find("lane["); at != std::string_view::npos; at = printed.find("lane[", at + 1)) {
    auto line = printed.substr(at, printed.find('\n', at) - at);
    const auto colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    line.remove_prefix(colon + 1);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    auto word = line.substr(0, line.find(' '));
    word.remove_prefix(std::min(word.find(':') + 1, word.size())); // its number; npos + 1 is 0
    if (const auto dot = word.rfind('.'); dot != std::string_view::npos) word = word.substr(0, dot);
    if (word.empty() || word.find('/') == std::string_view::npos) continue;
    if (std::ranges::find(lanes, word) == lanes.end()) lanes.emplace_back(word);
  }
  return lanes;
}

std::vector<std::string> parse_resources(std::string_view printed) {
  constexpr std::string_view before = "flags -- ";
  std::vector<std::string> found;
  for (auto at = printed.find("resource "); at != std::string_view::npos;
       at = printed.find("resource ", at + 1)) {
    const auto line = printed.substr(at, printed.find('\n', at) - at);
    const auto name = line.find(before);
    if (name != std::string_view::npos) found.emplace_back(line.substr(name + before.size()));
  }
  return found;
}

std::vector<std::string> ucx_resources() {
  ucp_config_t* config = nullptr;
  if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return {};
  (void)ucp_config_modify(config, "TLS", "all");
  (void)ucp_config_modify(config, "NET_DEVICES", "all");
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  const auto status = ucp_init(&params, config, &context);
  ucp_config_release(config);
  if (status != UCS_OK) return {};
  char* text = nullptr;
  std::size_t bytes = 0;
  std::vector<std::string> found;
  if (std::FILE* stream = ::open_memstream(&text, &bytes); stream != nullptr) {
    ucp_context_print_info(context, stream);
    std::fclose(stream);
    found = parse_resources({text, bytes});
    std::free(text);
  }
  ucp_cleanup(context);
  return found;
}

std::string short_lanes(std::string_view printed) {
  std::string text;
  for (const auto& lane : parse_lanes(printed))
    text += (text.empty() ? "" : "+") + lane;
  return text;
}

} // namespace troupe
