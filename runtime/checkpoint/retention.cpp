#include "runtime/checkpoint/retention.hpp"

#include <algorithm>

#include "runtime/base/planted_bug.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe {

std::vector<step_id> versions_to_remove(const retention_policy& policy, std::span<const step_id> present,
                                        step_id newest_verified) {
  std::vector<step_id> vouched;
  std::copy_if(present.begin(), present.end(), std::back_inserter(vouched),
               [&](step_id step) { return step <= newest_verified; });
  std::sort(vouched.begin(), vouched.end());
  vouched.erase(std::unique(vouched.begin(), vouched.end()), vouched.end());

  const std::size_t keep_last = std::max(policy.keep_last, 1U);
  const auto older = vouched.size() - std::min(vouched.size(), keep_last);
  std::vector<step_id> removed;
  for (std::size_t i = 0; i < older; ++i) {
    const bool milestone = policy.keep_every_steps != 0 && vouched[i].value() % policy.keep_every_steps == 0;
    if (!milestone && vouched[i] != newest_verified) removed.push_back(vouched[i]);
  }
  return removed;
}

expected<std::vector<step_id>> apply_retention(storage& files, const std::string& directory,
                                               const retention_policy& policy, step_id newest_verified,
                                               incarnation_id by) {
  const auto listing = catalog{files, directory}.list();
  if (!listing) return listing.failure();
  std::vector<step_id> present;
  for (const auto& entry : listing->versions)
    present.push_back(entry.step);
  auto going = versions_to_remove(policy, present, newest_verified);
  if (TROUPE_PLANTED("retention.newest_removed") && !going.empty()) going = {newest_verified};
  std::vector<std::string> hidden;
  for (const auto& entry : listing->versions) {
    if (!std::binary_search(going.begin(), going.end(), entry.step)) continue;
    hidden.push_back(join_path(directory, marked_name(version_state::removed, entry.step, by)));
    if (auto done = files.remove_all(hidden.back()); !done) return done.failure();
    if (auto done = files.rename(entry.path, hidden.back()); !done) return done.failure();
  }
  if (hidden.empty()) return going;
  // Before any content goes, or a crash could bring the old name back with files missing.
  if (auto done = files.sync_directory(directory); !done) return done.failure();
  for (const auto& path : hidden) {
    if (auto done = files.remove_all(path); !done) return done.failure();
  }
  return going;
}

} // namespace troupe
