// Log sink on standard error, by spdlog. Any thread. It owns its logger: nothing is registered globally.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/log.hpp"

namespace troupe {

class spdlog_sink final : public log_sink {
public:
  // Writes messages of `least` and above; `who` ("director", "worker 1") stands in every line.
  explicit spdlog_sink(log_level least, const std::string& who = "");
  ~spdlog_sink() override;
  void write(log_level level, std::string_view room, std::string_view text) override;

private:
  struct state;
  std::unique_ptr<state> state_;
};

// "debug", "info", "warning", "error"; errc::bad_argument names the text.
[[nodiscard]] expected<log_level> parse_log_level(std::string_view text);

} // namespace troupe
