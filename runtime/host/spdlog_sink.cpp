#include "runtime/host/spdlog_sink.hpp"

#include <array>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

namespace troupe {
namespace {

spdlog::level::level_enum level_of(log_level level) {
  switch (level) {
  case log_level::debug:
    return spdlog::level::debug;
  case log_level::info:
    return spdlog::level::info;
  case log_level::warning:
    return spdlog::level::warn;
  case log_level::error:
    return spdlog::level::err;
  }
  return spdlog::level::err;
}

} // namespace

struct spdlog_sink::state {
  explicit state(const std::string& who)
      : logger{who, std::make_shared<spdlog::sinks::stderr_color_sink_mt>()} {}
  spdlog::logger logger;
};

spdlog_sink::spdlog_sink(log_level least, const std::string& who)
    : state_{std::make_unique<state>(who)} {
  state_->logger.set_level(level_of(least));
  state_->logger.set_pattern(who.empty() ? "%H:%M:%S.%e %^%l%$ %v" : "%H:%M:%S.%e %^%l%$ %n (%P) %v");
}

spdlog_sink::~spdlog_sink() = default;

void spdlog_sink::write(log_level level, std::string_view room, std::string_view text) {
  state_->logger.log(level_of(level), "{}: {}", room, text);
}

expected<log_level> parse_log_level(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, log_level>, 4> levels{{{"debug", log_level::debug},
                                                                          {"info", log_level::info},
                                                                          {"warning", log_level::warning},
                                                                          {"error", log_level::error}}};
  for (const auto& [name, level] : levels) {
    if (name == text) return level;
  }
  return error{errc::bad_argument,
               "'" + std::string{text} + "' is not a log level: debug, info, warning, error"};
}

} // namespace troupe
