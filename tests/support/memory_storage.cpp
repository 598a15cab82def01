#include "tests/support/memory_storage.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

namespace troupe::test {

// One change of a directory: `from` moves to `to`, or `child` appears as `to`, or `from` disappears.
struct memory_storage::change {
  std::uint64_t sequence{0};
  std::string from; // empty: nothing is taken away
  std::string to;   // empty: nothing appears
  node_ptr child;   // what appears, where `from` is empty
};

struct memory_storage::node {
  bool directory{true};
  std::vector<std::byte> content;
  std::map<std::string, node_ptr> entries; // as seen now
  std::map<std::string, node_ptr> durable; // as a crash leaves it
  std::vector<change> pending;
};

namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= path.size()) {
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
void collect_pending(const std::shared_ptr<Node>& at, std::set<std::uint64_t>& sequences) {
  for (const auto& change : at->pending)
    sequences.insert(change.sequence);
  for (const auto* view : {&at->entries, &at->durable}) {
    for (const auto& [name, child] : *view)
      collect_pending(child, sequences);
  }
}

template <class Node>
void collapse(const std::shared_ptr<Node>& at, const std::set<std::uint64_t>& kept) {
  for (const auto& change : at->pending) {
    if (kept.contains(change.sequence)) apply_to(at->durable, change);
  }
  at->pending.clear();
  at->entries = at->durable;
  for (const auto& [name, child] : at->entries)
    collapse(child, kept);
}

} // namespace

memory_storage::memory_storage()
    : root_{std::make_shared<node>()} {}
memory_storage::~memory_storage() = default;

memory_storage::verdict memory_storage::next_call() {
  const auto index = calls_++;
  if (die_at_ && index == *die_at_) return verdict::fail;
  if (die_at_ && index > *die_at_) return verdict::die;
  return fail_at_ && index == fail_at_->first ? verdict::fail : verdict::go;
}

error memory_storage::planned_failure(const std::string& path) const {
  return {fail_at_ ? fail_at_->second : errc::storage_failed, path + ": planned failure"};
}

memory_storage::node_ptr memory_storage::find(const std::string& path) const {
  auto at = root_;
  for (const auto& part : split(path)) {
    if (!at->directory) return nullptr;
    const auto next = at->entries.find(part);
    if (next == at->entries.end()) return nullptr;
    at = next->second;
  }
  return at;
}

memory_storage::node_ptr memory_storage::parent(const std::string& path) const {
  auto parts = split(path);
  if (parts.empty()) return nullptr;
  parts.pop_back();
  std::string above;
  for (const auto& part : parts)
    above += "/" + part;
  auto at = find(above);
  return at != nullptr && at->directory ? at : nullptr;
}

void memory_storage::apply(const node_ptr& directory, change what) {
  what.sequence = sequence_++;
  auto child = what.child;
  if (!what.from.empty() && !what.to.empty()) child = directory->entries.at(what.from);
  if (!what.to.empty()) directory->entries[what.to] = child;
  if (!what.from.empty()) directory->entries.erase(what.from);
  directory->pending.push_back(std::move(what));
}

expected<void> memory_storage::create_directories(const std::string& path) {
  if (next_call() != verdict::go) return planned_failure(path);
  changes_.push_back("create_directories " + path);
  auto at = root_;
  for (const auto& part : split(path)) {
    if (!at->directory) return error{errc::storage_failed, path + ": not a directory"};
    if (!at->entries.contains(part)) apply(at, {0, "", part, std::make_shared<node>()});
    at = at->entries.at(part);
  }
  if (!at->directory) return error{errc::storage_failed, path + ": not a directory"};
  return {};
}

expected<void> memory_storage::write_file(const std::string& path,
                                          std::span<const std::span<const std::byte>> pieces) {
  const auto what = next_call();
  if (what == verdict::die) return planned_failure(path);
  const auto directory = parent(path);
  if (directory == nullptr) return missing(path);
  const auto name = last_of(path);
  if (const auto at = find(path); at != nullptr && at->directory)
    return error{errc::storage_failed, path + ": is a directory"};
  changes_.push_back("write_file " + path);
  auto file = std::make_shared<node>();
  file->directory = false;
  for (const auto& piece : pieces)
    file->content.insert(file->content.end(), piece.begin(), piece.end());
  if (what == verdict::fail) file->content.resize(file->content.size() / 2);
  apply(directory, {0, "", name, file});
  return what == verdict::fail ? expected<void>{planned_failure(path)} : expected<void>{};
}

expected<std::vector<std::byte>> memory_storage::read_file(const std::string& path, std::uint64_t bytes_max) {
  if (next_call() != verdict::go) return planned_failure(path);
  const auto at = find(path);
  if (at == nullptr) return missing(path);
  if (at->directory) return error{errc::storage_failed, path + ": is a directory"};
  if (at->content.size() > bytes_max) return error{errc::too_large, path + " is too large"};
  return at->content;
}

expected<void> memory_storage::read_at(const std::string& path, std::uint64_t offset,
                                       std::span<std::byte> into) {
  if (next_call() != verdict::go) return planned_failure(path);
  const auto at = find(path);
  if (at == nullptr || at->directory) return missing(path);
  if (offset > at->content.size() || into.size() > at->content.size() - offset)
    return error{errc::corrupt, path + " is shorter than expected"};
  if (!into.empty()) std::memcpy(into.data(), at->content.data() + offset, into.size());
  return {};
}

expected<std::uint64_t> memory_storage::file_bytes(const std::string& path) {
  if (next_call() != verdict::go) return planned_failure(path);
  const auto at = find(path);
  if (at == nullptr || at->directory) return missing(path);
  return std::uint64_t{at->content.size()};
}

expected<std::vector<std::string>> memory_storage::list(const std::string& directory) {
  if (next_call() != verdict::go) return planned_failure(directory);
  const auto at = find(directory);
  if (at == nullptr) return missing(directory);
  if (!at->directory) return error{errc::storage_failed, directory + ": not a directory"};
  std::vector<std::string> names;
  for (const auto& [name, child] : at->entries)
    names.push_back(name);
  return names;
}

expected<void> memory_storage::rename(const std::string& from, const std::string& to) {
  if (next_call() != verdict::go) return planned_failure(from);
  const auto source = find(from);
  const auto target = find(to);
  const auto directory = parent(from);
  if (source == nullptr || directory == nullptr || directory != parent(to)) return missing(from);
  if (target != nullptr && target->directory && !target->entries.empty())
    return error{errc::storage_failed, to + ": directory not empty"};
  changes_.push_back("rename " + from + " -> " + to);
  apply(directory, {0, last_of(from), last_of(to), nullptr});
  return {};
}

expected<void> memory_storage::sync_directory(const std::string& path) {
  if (next_call() != verdict::go) return planned_failure(path);
  const auto at = find(path);
  if (at == nullptr) return missing(path);
  changes_.push_back("sync_directory " + path);
  at->durable = at->entries;
  at->pending.clear();
  return {};
}

void memory_storage::remove_tree(const node_ptr& directory, const std::string& name) {
  const auto child = directory->entries.at(name);
  while (!child->entries.empty()) {
    const auto inner = child->entries.begin()->first;
    remove_tree(child, inner);
  }
  apply(directory, {0, name, "", nullptr});
}

expected<void> memory_storage::remove_all(const std::string& path) {
  if (next_call() != verdict::go) return planned_failure(path);
  changes_.push_back("remove_all " + path);
  if (find(path) == nullptr) return {};
  remove_tree(parent(path), last_of(path));
  return {};
}

std::size_t memory_storage::pending() const {
  std::set<std::uint64_t> sequences;
  collect_pending(root_, sequences);
  return sequences.size();
}

void memory_storage::crash(const std::function<bool(std::size_t)>& keep) {
  std::set<std::uint64_t> sequences;
  collect_pending(root_, sequences);
  std::set<std::uint64_t> kept;
  std::size_t index = 0;
  for (const auto sequence : sequences) {
    if (keep(index++)) kept.insert(sequence);
  }
  collapse(root_, kept);
  fail_at_.reset();
  die_at_.reset();
}

void memory_storage::settle() {
  crash([](std::size_t) { return true; });
}

} // namespace troupe::test
