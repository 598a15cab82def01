#include "runtime/sim/sim_storage.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace troupe {

// One change of a directory: `from` moves to `to`, or `child` appears as `to`, or `from` disappears.
struct sim_storage::change {
  std::string from; // empty: nothing is taken away
  std::string to;   // empty: nothing appears
  node_ptr child;   // what appears, where `from` is empty
  std::uint64_t number{0};
  sim_host_id host{0};
};

struct sim_storage::node {
  bool directory{true};
  std::vector<std::byte> content;
  std::map<std::string, node_ptr> entries; // as seen now
  std::map<std::string, node_ptr> durable; // as a loss of power leaves it
  std::vector<change> pending;
};

namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (end > begin && path.substr(begin, end - begin) != ".")
      parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string last_of(const std::string& path) {
  const auto parts = split(path);
  return parts.empty() ? std::string{} : parts.back();
}

error missing(const std::string& path) {
  return {errc::not_found, path + ": no such file or directory"};
}

// Applies a change to one view of a directory; one that no longer makes sense has no effect.
template <class Node, class Change>
void apply_to(std::map<std::string, std::shared_ptr<Node>>& view, const Change& what) {
  auto child = what.child;
  if (!what.from.empty()) {
    const auto at = view.find(what.from);
    if (at == view.end()) return;
    if (!what.to.empty()) child = at->second;
  }
  if (!what.to.empty()) {
    const auto target = view.find(what.to);
    if (target != view.end() && target->second != child && target->second->directory &&
        !target->second->durable.empty())
      return; // a directory with content is never replaced
    view[what.to] = child;
  }
  if (!what.from.empty()) view.erase(what.from);
}

template <class Node>
void collect_pending(const std::shared_ptr<Node>& at, sim_host_id host, std::set<std::uint64_t>& numbers) {
  for (const auto& change : at->pending) {
    if (change.host == host) numbers.insert(change.number);
  }
  for (const auto* view : {&at->entries, &at->durable}) {
    for (const auto& [name, child] : *view)
      collect_pending(child, host, numbers);
  }
}

// What `kept` names of the host's pending changes is durable from now on, the others never happened.
template <class Node>
void collapse(const std::shared_ptr<Node>& at, sim_host_id host, const std::set<std::uint64_t>& kept) {
  for (const auto& change : at->pending) {
    if (change.host == host && kept.contains(change.number)) apply_to(at->durable, change);
  }
  std::erase_if(at->pending, [host](const auto& change) { return change.host == host; });
  at->entries = at->durable;
  for (const auto& change : at->pending)
    apply_to(at->entries, change);
  for (const auto& [name, child] : at->entries)
    collapse(child, host, kept);
}

template <class Node>
std::uint64_t bytes_below(const std::shared_ptr<Node>& at) {
  std::uint64_t total = at->content.size();
  for (const auto& [name, child] : at->entries)
    total += bytes_below(child);
  return total;
}

} // namespace

sim_storage::sim_storage()
    : root_{std::make_shared<node>()} {}
sim_storage::~sim_storage() = default;

sim_storage::node_ptr sim_storage::find(const std::string& path) const {
  auto at = root_;
  for (const auto& part : split(path)) {
    if (!at->directory) return nullptr;
    const auto next = at->entries.find(part);
    if (next == at->entries.end()) return nullptr;
    at = next->second;
  }
  return at;
}

sim_storage::node_ptr sim_storage::parent(const std::string& path) const {
  const auto slash = path.find_last_of('/');
  auto at = slash == std::string::npos ? root_ : find(path.substr(0, slash));
  return at != nullptr && at->directory ? at : nullptr;
}

void sim_storage::apply(const node_ptr& directory, change what) {
  what.number = changes_++;
  what.host = writer_;
  const auto child = what.from.empty() || what.to.empty() ? what.child : directory->entries.at(what.from);
  if (!what.to.empty()) directory->entries[what.to] = child;
  if (!what.from.empty()) directory->entries.erase(what.from);
  directory->pending.push_back(std::move(what));
}

expected<void> sim_storage::create_directories(const std::string& path) {
  if (failure_) return *failure_;
  auto at = root_;
  for (const auto& part : split(path)) {
    if (!at->directory) break;
    if (!at->entries.contains(part)) apply(at, {.from = "", .to = part, .child = std::make_shared<node>()});
    at = at->entries.at(part);
  }
  if (!at->directory) return error{errc::storage_failed, path + ": not a directory"};
  return {};
}

expected<void> sim_storage::write_file(const std::string& path,
                                       std::span<const std::span<const std::byte>> pieces) {
  if (failure_) return *failure_;
  const auto directory = parent(path);
  if (directory == nullptr) return missing(path);
  const auto former = find(path);
  if (former != nullptr && former->directory) return error{errc::storage_failed, path + ": is a directory"};
  auto file = std::make_shared<node>();
  file->directory = false;
  for (const auto piece : pieces)
    file->content.insert(file->content.end(), piece.begin(), piece.end());
  // Truncated before it is written: replacing needs no double room.
  const auto freed = former == nullptr ? 0 : former->content.size();
  if (capacity_ != no_limit && bytes_used() - freed + file->content.size() > capacity_) {
    if (former != nullptr) apply(directory, {.from = last_of(path), .to = "", .child = nullptr});
    return error{errc::storage_full, path + ": no space left"};
  }
  apply(directory, {.from = "", .to = last_of(path), .child = file});
  return {};
}

expected<std::vector<std::byte>> sim_storage::read_file(const std::string& path, std::uint64_t bytes_max) {
  const auto at = find(path);
  if (at == nullptr || at->directory) return missing(path);
  if (at->content.size() > bytes_max) return error{errc::too_large, path + ": larger than its limit"};
  return at->content;
}

expected<void> sim_storage::read_at(const std::string& path, std::uint64_t offset,
                                    std::span<std::byte> into) {
  const auto at = find(path);
  if (at == nullptr || at->directory) return missing(path);
  if (offset > at->content.size() || into.size() > at->content.size() - offset)
    return error{errc::corrupt, path + ": too short"};
  if (!into.empty()) std::memcpy(into.data(), at->content.data() + offset, into.size());
  return {};
}

expected<std::uint64_t> sim_storage::file_bytes(const std::string& path) {
  const auto at = find(path);
  if (at == nullptr || at->directory) return missing(path);
  return std::uint64_t{at->content.size()};
}

expected<std::vector<std::string>> sim_storage::list(const std::string& directory) {
  const auto at = find(directory);
  if (at == nullptr) return missing(directory);
  if (!at->directory) return error{errc::storage_failed, directory + ": not a directory"};
  std::vector<std::string> names;
  for (const auto& [name, child] : at->entries)
    names.push_back(name);
  return names;
}

expected<void> sim_storage::rename(const std::string& from, const std::string& to) {
  if (failure_) return *failure_;
  const auto source = find(from);
  const auto target = find(to);
  const auto directory = parent(from);
  if (source == nullptr || directory == nullptr || directory != parent(to)) return missing(from);
  if (source == target) return {};
  if (target != nullptr && target->directory && !target->entries.empty())
    return error{errc::storage_failed, to + ": directory not empty"};
  apply(directory, {.from = last_of(from), .to = last_of(to), .child = nullptr});
  return {};
}

expected<void> sim_storage::sync_directory(const std::string& path) {
  if (failure_) return *failure_;
  const auto at = find(path);
  if (at == nullptr || !at->directory) return missing(path);
  at->durable = at->entries;
  at->pending.clear();
  return {};
}

void sim_storage::remove_tree(const node_ptr& directory, const std::string& name) {
  const auto child = directory->entries.at(name);
  while (!child->entries.empty()) {
    const auto inner = child->entries.begin()->first;
    remove_tree(child, inner);
  }
  apply(directory, {.from = name, .to = "", .child = nullptr});
}

expected<void> sim_storage::remove_all(const std::string& path) {
  if (failure_) return *failure_;
  if (find(path) != nullptr && !split(path).empty()) remove_tree(parent(path), last_of(path));
  return {};
}

std::uint64_t sim_storage::bytes_used() const {
  return bytes_below(root_);
}

std::size_t sim_storage::pending(sim_host_id host) const {
  std::set<std::uint64_t> numbers;
  collect_pending(root_, host, numbers);
  return numbers.size();
}

void sim_storage::lose_power(sim_host_id host, const std::function<bool(std::size_t)>& keep) {
  std::set<std::uint64_t> numbers;
  collect_pending(root_, host, numbers);
  std::set<std::uint64_t> kept;
  std::size_t index = 0;
  for (const auto number : numbers) {
    if (keep(index++)) kept.insert(number);
  }
  collapse(root_, host, kept);
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

expected<void> sim_files::sync_directory(const std::string& path) {
  return dies() ? expected<void>{gone()} : disk_.sync_directory(path);
}

expected<void> sim_files::remove_all(const std::string& path) {
  return dies() ? expected<void>{gone()} : disk_.remove_all(path);
}

} // namespace troupe
