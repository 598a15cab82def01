#include "runtime/sim/sim_storage.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return {};
  return slash == 0 && path.size() > 1 ? "/" : path.substr(0, slash);
}

bool inside(const std::string& path, const std::string& directory) {
  if (directory == "/") return path.size() > 1 && path.front() == '/';
  return path.size() > directory.size() && path.starts_with(directory) && path[directory.size()] == '/';
}

error missing(const std::string& path) {
  return {errc::not_found, path + ": no such file or directory"};
}

} // namespace

expected<void> sim_storage::create_directories(const std::string& path) {
  if (failure_) return *failure_;
  for (auto at = path; !at.empty() && at != "/"; at = parent_of(at)) {
    const auto [found, fresh] = entries_.try_emplace(at, entry{true, {}});
    if (!fresh && !found->second.directory) return error{errc::storage_failed, at + ": not a directory"};
  }
  return {};
}

expected<void> sim_storage::write_file(const std::string& path,
                                       std::span<const std::span<const std::byte>> pieces) {
  if (failure_) return *failure_;
  const auto parent = parent_of(path);
  if (!parent.empty() && !entries_.contains(parent)) return missing(parent);
  const auto former = entries_.find(path);
  if (former != entries_.end() && former->second.directory)
    return error{errc::storage_failed, path + ": is a directory"};
  std::vector<std::byte> bytes;
  for (const auto piece : pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  if (former != entries_.end()) entries_.erase(former); // truncated before it is written
  if (bytes_used() + bytes.size() > capacity_) return error{errc::storage_full, path + ": no space left"};
  entries_[path] = {false, std::move(bytes)};
  return {};
}

expected<std::vector<std::byte>> sim_storage::read_file(const std::string& path, std::uint64_t bytes_max) {
  const auto found = entries_.find(path);
  if (found == entries_.end() || found->second.directory) return missing(path);
  if (found->second.bytes.size() > bytes_max) return error{errc::too_large, path + ": larger than its limit"};
  return found->second.bytes;
}

expected<void> sim_storage::read_at(const std::string& path, std::uint64_t offset,
                                    std::span<std::byte> into) {
  const auto found = entries_.find(path);
  if (found == entries_.end() || found->second.directory) return missing(path);
  const auto& bytes = found->second.bytes;
  if (offset > bytes.size() || into.size() > bytes.size() - offset)
    return error{errc::corrupt, path + ": too short"};
  std::memcpy(into.data(), bytes.data() + offset, into.size());
  return {};
}

expected<std::uint64_t> sim_storage::file_bytes(const std::string& path) {
  const auto found = entries_.find(path);
  if (found == entries_.end() || found->second.directory) return missing(path);
  return std::uint64_t{found->second.bytes.size()};
}

expected<std::vector<std::string>> sim_storage::list(const std::string& directory) {
  const auto found = entries_.find(directory);
  if (found == entries_.end() || !found->second.directory) return missing(directory);
  std::vector<std::string> names;
  for (const auto& [path, one] : entries_) {
    if (parent_of(path) == directory)
      names.push_back(path.substr(directory == "/" ? 1 : directory.size() + 1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

expected<void> sim_storage::rename(const std::string& from, const std::string& to) {
  if (failure_) return *failure_;
  if (!entries_.contains(from)) return missing(from);
  if (const auto parent = parent_of(to); !parent.empty() && !entries_.contains(parent))
    return missing(parent);
  if (from == to) return {};
  for (const auto& [path, one] : entries_) {
    if (inside(path, to)) return error{errc::storage_failed, to + ": directory not empty"};
  }
  std::map<std::string, entry> moved;
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (it->first == from || inside(it->first, from)) {
      moved.emplace(to + it->first.substr(from.size()), std::move(it->second));
      it = entries_.erase(it);
    } else {
      ++it;
    }
  }
  for (auto& [path, one] : moved)
    entries_[path] = std::move(one);
  return {};
}

expected<void> sim_storage::sync_directory(const std::string& path) {
  return entries_.contains(path) ? expected<void>{} : missing(path);
}

expected<void> sim_storage::remove_all(const std::string& path) {
  if (failure_) return *failure_;
  std::erase_if(entries_, [&](const auto& one) { return one.first == path || inside(one.first, path); });
  return {};
}

std::uint64_t sim_storage::bytes_used() const {
  std::uint64_t total = 0;
  for (const auto& [path, one] : entries_)
    total += one.bytes.size();
  return total;
}

// --- one process's view ---------------------------------------------------------------------------------

namespace {

error gone() {
  return {errc::storage_failed, "the process has ended"};
}

} // namespace

bool sim_files::dies() {
  if (owner_.alive()) disk_.about_to_change(owner_);
  return !owner_.alive();
}

expected<void> sim_files::create_directories(const std::string& path) {
  return dies() ? expected<void>{gone()} : disk_.create_directories(path);
}

expected<void> sim_files::write_file(const std::string& path,
                                     std::span<const std::span<const std::byte>> pieces) {
  if (!owner_.alive()) return gone();
  if (!dies()) return disk_.write_file(path, pieces);
  (void)disk_.write_file(path, pieces.first((pieces.size() + 1) / 2)); // torn
  return gone();
}

expected<void> sim_files::rename(const std::string& from, const std::string& to) {
  return dies() ? expected<void>{gone()} : disk_.rename(from, to);
}

expected<void> sim_files::remove_all(const std::string& path) {
  return dies() ? expected<void>{gone()} : disk_.remove_all(path);
}

} // namespace troupe
