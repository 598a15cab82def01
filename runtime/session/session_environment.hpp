// Session environment: an environment whose network survives the failure of its paths.
#pragma once

#include "runtime/seams/environment.hpp"
#include "runtime/session/session_transport.hpp"

namespace troupe {

class session_environment {
public:
  session_environment(environment& inner, session_settings settings)
      : sessions_{inner.loop, inner.clock, inner.network, settings}
      , env_{environment_with(inner, sessions_, inner.collectives)} {}

  [[nodiscard]] environment& env() { return env_; }
  [[nodiscard]] const session_counters& counters() const { return sessions_.counters(); }

private:
  session_transport sessions_;
  environment env_;
};

} // namespace troupe
