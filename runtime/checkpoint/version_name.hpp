// Names in a checkpoint directory.
//
//   step-000000000200/                        a whole version
//   .partial-step-000000000200-<incarnation>  being written, or left behind by a crash
//   .retired-step-000000000200-<incarnation>  the former version 200, all of it, while 200 is being replaced
//   .removed-step-000000000200-<incarnation>  being deleted
//   abandoned-step-000000000200-<incarnation> newer than the step a job was told to resume from: kept, unused
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/ids.hpp"

namespace troupe {

enum class version_state : unsigned char { whole, partial, retired, removed, abandoned };

struct version_name {
  version_state state{version_state::whole};
  step_id step;
};

[[nodiscard]] std::string whole_name(step_id step);
// `state` is not `whole`.
[[nodiscard]] std::string marked_name(version_state state, step_id step, incarnation_id by);
// Nothing for a name that this room would not write.
[[nodiscard]] std::optional<version_name> parse_version_name(std::string_view name);

[[nodiscard]] std::string join_path(std::string_view directory, std::string_view name);
// A plain file name of a version: letters, digits, '.', '_', '-'; no leading '.'.
[[nodiscard]] bool is_version_file_name(std::string_view name);

inline constexpr std::string_view manifest_name = "manifest.json";

} // namespace troupe
