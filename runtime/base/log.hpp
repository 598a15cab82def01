// Log facade: rooms log through a sink that `main` passes in; nothing global.
#pragma once

#include <string_view>

namespace troupe {

enum class log_level : unsigned char { debug, info, warning, error };

class log_sink {
public:
  virtual ~log_sink() = default;
  virtual void write(log_level level, std::string_view room, std::string_view text) = 0;
};

} // namespace troupe
