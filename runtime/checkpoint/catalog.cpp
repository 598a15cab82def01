#include "runtime/checkpoint/catalog.hpp"

#include <algorithm>

#include "runtime/base/digest.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/checkpoint/limits.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe {

struct catalog::found_name {
  version_name name;
  std::string path;
};

expected<manifest> read_manifest(storage& files, const std::string& path) {
  const auto manifest_path = join_path(path, manifest_name);
  auto text = files.read_file(manifest_path, limits::manifest_bytes_max);
  if (text) return parse_manifest(*text, manifest_path);
  switch (text.failure().code) {
  case errc::not_found:
    probe<"catalog.manifest_missing">::hit();
    return error{errc::not_found, path + " is incomplete: it has no manifest"};
  case errc::too_large:
    return error{errc::corrupt, text.failure().text};
  default:
    return text.failure();
  }
}

expected<void> verify_file(storage& files, const std::string& path, std::uint64_t bytes,
                           const std::string& digest) {
  const auto size = files.file_bytes(path);
  if (probe<"catalog.file_missing">::when(!size && size.failure().code == errc::not_found))
    return error{errc::corrupt, path + " is missing"};
  if (!size) return size.failure();
  if (probe<"catalog.file_cut">::when(*size != bytes))
    return error{errc::corrupt, path + " has " + std::to_string(*size) + " bytes, its manifest says " +
                                    std::to_string(bytes)};
  std::vector<std::byte> chunk(std::min<std::uint64_t>(limits::verify_chunk_bytes, bytes));
  digest_builder builder;
  for (std::uint64_t offset = 0; offset < bytes; offset += chunk.size()) {
    const auto part = std::span{chunk}.first(std::min<std::uint64_t>(chunk.size(), bytes - offset));
    if (auto read = files.read_at(path, offset, part); !read) return read;
    builder.add(part);
  }
  const auto found = builder.finish();
  if (probe<"catalog.digest_differs">::when(found != digest))
    return error{errc::corrupt, path + " has the digest " + found + ", its manifest says " + digest};
  return {};
}

expected<void> verify_files(storage& files, const std::string& path, const manifest& version) {
  for (const auto& file : version.files) {
    if (auto good = verify_file(files, join_path(path, file.name), file.bytes, file.digest); !good)
      return good;
  }
  return {};
}

catalog::catalog(storage& files, std::string directory)
    : files_{files}
    , directory_{std::move(directory)} {}

expected<std::vector<catalog::found_name>> catalog::scan() const {
  auto names = files_.list(directory_);
  if (!names && names.failure().code == errc::not_found) return std::vector<found_name>{};
  if (!names) return names.failure();
  std::vector<found_name> found;
  for (const auto& name : *names) {
    if (found.size() == limits::checkpoint_versions_max)
      return error{errc::too_large, directory_ + " holds more than " +
                                        std::to_string(limits::checkpoint_versions_max) + " versions"};
    if (const auto parsed = parse_version_name(name)) found.push_back({*parsed, join_path(directory_, name)});
  }
  return found;
}

std::set<step_id> catalog::whole_steps(const std::vector<found_name>& found) {
  std::set<step_id> whole;
  for (const auto& [name, path] : found) {
    if (name.state == version_state::whole) whole.insert(name.step);
  }
  return whole;
}

expected<catalog_listing> catalog::list() const {
  const auto found = scan();
  if (!found) return found.failure();
  const auto whole = whole_steps(*found);
  catalog_listing listing;
  for (const auto& [name, path] : *found) {
    // A retired version whose replacement never arrived is still the version of its step.
    const bool orphan = name.state == version_state::retired && !whole.contains(name.step);
    probe<"catalog.retired_stands_in">::when(orphan);
    if (name.state == version_state::whole || orphan) {
      listing.versions.push_back({name.step, path});
    } else if (name.state == version_state::abandoned) {
      listing.abandoned.push_back(path);
    } else {
      listing.unfinished.push_back(path);
    }
  }
  std::stable_sort(listing.versions.begin(), listing.versions.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  return listing;
}

expected<verified_version> catalog::verify(const version_entry& entry) const {
  auto version = read_manifest(files_, entry.path);
  if (!version) return version.failure();
  if (version->metadata.step != entry.step)
    return error{errc::corrupt,
                 entry.path + " holds the manifest of step " + to_string(version->metadata.step)};
  if (auto good = verify_files(files_, entry.path, *version); !good) return good.failure();
  return verified_version{entry.step, entry.path, std::move(*version)};
}

expected<version_search> catalog::newest_verified(const state_layout& layout) const {
  auto listing = list();
  if (!listing) return listing.failure();
  version_search search;
  for (auto entry = listing->versions.rbegin(); entry != listing->versions.rend(); ++entry) {
    const auto version = read_manifest(files_, entry->path);
    auto belongs = version ? check_belongs(*version, layout, entry->path) : expected<void>{version.failure()};
    if (!belongs &&
        (belongs.failure().code == errc::wrong_program || belongs.failure().code == errc::wrong_version)) {
      search.refused = belongs.failure();
      return search;
    }
    auto verified = belongs ? verify(*entry) : expected<verified_version>{belongs.failure()};
    if (belongs && TROUPE_PLANTED("catalog.newest_not_verified"))
      verified = verified_version{entry->step, entry->path, *version};
    if (verified) {
      search.found = std::move(*verified);
      return search;
    }
    probe<"catalog.fell_back">::hit();
    search.rejected.push_back({entry->step, entry->path, verified.failure()});
  }
  return search;
}

expected<verified_version> catalog::version_at(step_id step, const state_layout& layout) const {
  const auto listing = list();
  if (!listing) return listing.failure();
  std::optional<error> cause;
  for (const auto& entry : listing->versions) {
    if (entry.step != step) continue;
    auto verified = verify(entry);
    if (!verified) {
      cause = verified.failure();
      continue;
    }
    if (auto belongs = check_belongs(verified->manifest, layout, entry.path); !belongs)
      return belongs.failure();
    return verified;
  }
  if (cause) return *cause;
  return error{errc::not_found, directory_ + " holds no checkpoint of step " + to_string(step)};
}

expected<void> catalog::clean_unfinished() const {
  const auto found = scan();
  if (!found) return found.failure();
  auto whole = whole_steps(*found);
  bool changed = false;
  for (const auto& [name, path] : *found) {
    if (name.state == version_state::whole || name.state == version_state::abandoned) continue;
    const bool put_back = name.state == version_state::retired && whole.insert(name.step).second;
    probe<"catalog.leftover_removed">::when(!put_back);
    probe<"catalog.retired_put_back">::when(put_back);
    auto done = put_back ? files_.rename(path, join_path(directory_, whole_name(name.step)))
                         : files_.remove_all(path);
    if (!done) return done;
    changed = true;
  }
  return changed ? files_.sync_directory(directory_) : expected<void>{};
}

expected<std::vector<std::string>> catalog::abandon_after(step_id step, incarnation_id by) const {
  const auto listing = list();
  if (!listing) return listing.failure();
  std::vector<std::string> moved;
  for (const auto& entry : listing->versions) {
    if (entry.step <= step) continue;
    auto target = join_path(directory_, marked_name(version_state::abandoned, entry.step, by));
    if (auto done = files_.rename(entry.path, target); !done) return done.failure();
    moved.push_back(std::move(target));
  }
  if (!moved.empty()) {
    if (auto synced = files_.sync_directory(directory_); !synced) return synced.failure();
  }
  return moved;
}

} // namespace troupe
