// What the ckpt commands share: looking at a version, and printing. Private to this folder.
#pragma once

#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/ckpt/ckpt_command.hpp"
#include "runtime/checkpoint/catalog.hpp"

namespace troupe::ckpt {

inline constexpr int exit_good = 0;
inline constexpr int exit_bad = 1;
inline constexpr int exit_usage = 2;

// One version as it was found.
struct finding {
  version_entry entry;
  std::optional<manifest> about; // where the manifest could be read
  std::optional<error> cause;    // why the version cannot be used

  [[nodiscard]] bool good() const { return !cause; }
  // "ok", "incomplete", "newer", "unreadable", "corrupt"; `unverified` where the data was not looked at.
  [[nodiscard]] std::string status(bool quick = false) const;
};

struct command_context {
  storage& files;
  const ckpt_options& options;
  std::ostream& out;
  std::ostream& err;
};

[[nodiscard]] finding look_at(storage& files, const version_entry& entry, bool quick);

// Versions of the directory, oldest first; those of `step` only where one is given. errc::not_found names the
// directory or the step.
[[nodiscard]] expected<std::vector<version_entry>> entries_of(const command_context& context,
                                                              std::optional<std::uint64_t> step);

[[nodiscard]] nlohmann::json to_json(const finding& found);
// One line on `err`, and with --json an object with the error on `out`. Returns `code`.
int fail(const command_context& context, const error& cause, int code);
void print_json(const command_context& context, const nlohmann::json& value);
// Rows of equal length; numbers to the right where `right` says so.
void print_table(std::ostream& out, const std::vector<std::vector<std::string>>& rows,
                 const std::vector<bool>& right);
[[nodiscard]] std::string shape_text(const std::vector<std::uint64_t>& shape);

int list_versions(const command_context& context);
int show_version(const command_context& context);
int verify_versions(const command_context& context);
int diff_versions(const command_context& context);

} // namespace troupe::ckpt
