#include "actors/graph/handout.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

std::string encode(const job_handout& what) {
  return nlohmann::json{{"settings", encode(what.settings)}, {"train", what.train_locator},
                        {"test", what.test_locator},         {"started_ns", what.started_ns},
                        {"machine", what.machine},           {"train_digest", what.train_digest},
                        {"test_digest", what.test_digest}}
      .dump();
}

expected<job_handout> decode_handout(const std::string& text) {
  try {
    const auto parsed = nlohmann::json::parse(text);
    auto settings = decode_job_settings(parsed.at("settings").get<std::string>());
    if (!settings) return settings.failure();
    const auto& started = parsed.at("started_ns");
    if (!started.is_number_integer()) // the library would convert a fraction, or 1e300
      return error{errc::corrupt, "the job's settings cannot be read: started_ns is not a whole number"};
    return job_handout{std::move(*settings),        parsed.at("train"),   parsed.at("test"),
                       started.get<std::int64_t>(), parsed.at("machine"), parsed.at("train_digest"),
                       parsed.at("test_digest")};
  } catch (const nlohmann::json::exception& problem) {
    return error{errc::corrupt, std::string{"the job's settings cannot be read: "} + problem.what()};
  }
}

} // namespace troupe
