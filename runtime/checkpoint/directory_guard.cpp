#include "runtime/checkpoint/directory_guard.hpp"

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/version_name.hpp"

namespace troupe {
namespace {

error refusal(const std::string& directory, const error& cause) {
  const bool known = cause.code == errc::storage_full || cause.code == errc::bad_argument;
  return {known ? cause.code : errc::storage_failed,
          directory + ": cannot be written: " + cause.text + "; accepted: a directory that can be written"};
}

std::string parent_of(std::string_view path) {
  while (path.size() > 1 && path.back() == '/')
    path.remove_suffix(1);
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string{path.substr(0, slash)};
}

// `directory` and its ancestors, as far as they do not exist yet; deepest first.
std::vector<std::string> missing_part(storage& files, const std::string& directory) {
  constexpr std::size_t depth_max = 256;
  std::vector<std::string> missing;
  for (std::string path = directory; missing.size() < depth_max; path = parent_of(path)) {
    const auto names = files.list(path);
    if (names || names.failure().code != errc::not_found || path == parent_of(path)) break;
    missing.push_back(path);
  }
  return missing;
}

expected<void> try_write(storage& files, const std::string& directory, incarnation_id self) {
  const std::string_view text = "probe";
  const std::array pieces{std::as_bytes(std::span{text.data(), text.size()})};
  const auto probe = join_path(directory, ".probe-" + to_string(self));
  auto written = files.write_file(probe, pieces);
  auto removed = files.remove_all(probe);
  if (!written) return written;
  if (!removed) return removed;
  const auto names = files.list(directory);
  return names ? expected<void>{} : expected<void>{names.failure()};
}

} // namespace

expected<void> prepare_checkpoint_directory(storage& files, const std::string& directory,
                                            incarnation_id self) {
  if (directory.empty() || directory.find('\0') != std::string::npos)
    return refusal(directory, {errc::bad_argument, "not a path"});
  const auto missing = missing_part(files, directory);
  if (auto done = files.create_directories(directory); !done) return refusal(directory, done.failure());
  for (const auto& created : missing) {
    if (auto done = files.sync_directory(parent_of(created)); !done)
      return refusal(directory, done.failure());
  }
  if (auto done = try_write(files, directory, self); !done) return refusal(directory, done.failure());
  return {};
}

} // namespace troupe
