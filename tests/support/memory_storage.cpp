#include "tests/support/memory_storage.hpp"

#include <utility>

namespace troupe::test {

memory_storage::verdict memory_storage::next_call() {
  const auto index = calls_++;
  if (die_at_ && index == *die_at_) return verdict::fail;
  if (die_at_ && index > *die_at_) return verdict::die;
  return fail_at_ && index == fail_at_->first ? verdict::fail : verdict::go;
}

error memory_storage::planned_failure(const std::string& path) const {
  return {fail_at_ ? fail_at_->second : errc::storage_failed, path + ": planned failure"};
}

std::optional<error> memory_storage::failure_of(const std::string& path) {
  return next_call() == verdict::go ? std::nullopt : std::optional{planned_failure(path)};
}

void memory_storage::note(std::string what, bool happened) {
  if (happened) changes_.push_back(std::move(what));
}

expected<void> memory_storage::create_directories(const std::string& path) {
  if (const auto planned = failure_of(path)) return *planned;
  note("create_directories " + path, true);
  return disk_.create_directories(path);
}

expected<void> memory_storage::write_file(const std::string& path,
                                          std::span<const std::span<const std::byte>> pieces) {
  const auto what = next_call();
  if (what == verdict::die) return planned_failure(path);
  if (what == verdict::go) {
    auto written = disk_.write_file(path, pieces);
    note("write_file " + path, written.has_value());
    return written;
  }
  std::vector<std::byte> bytes;
  for (const auto piece : pieces)
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  const std::span<const std::byte> half{bytes.data(), bytes.size() / 2};
  note("write_file " + path, disk_.write_file(path, {&half, 1}).has_value());
  return planned_failure(path);
}

expected<std::vector<std::byte>> memory_storage::read_file(const std::string& path, std::uint64_t bytes_max) {
  if (const auto planned = failure_of(path)) return *planned;
  return disk_.read_file(path, bytes_max);
}

expected<void> memory_storage::read_at(const std::string& path, std::uint64_t offset,
                                       std::span<std::byte> into) {
  if (const auto planned = failure_of(path)) return *planned;
  return disk_.read_at(path, offset, into);
}

expected<std::uint64_t> memory_storage::file_bytes(const std::string& path) {
  if (const auto planned = failure_of(path)) return *planned;
  return disk_.file_bytes(path);
}

expected<std::vector<std::string>> memory_storage::list(const std::string& directory) {
  if (const auto planned = failure_of(directory)) return *planned;
  return disk_.list(directory);
}

expected<void> memory_storage::rename(const std::string& from, const std::string& to) {
  if (const auto planned = failure_of(from)) return *planned;
  auto renamed = disk_.rename(from, to);
  note("rename " + from + " -> " + to, renamed.has_value());
  return renamed;
}

expected<void> memory_storage::sync_directory(const std::string& path) {
  if (const auto planned = failure_of(path)) return *planned;
  auto synced = disk_.sync_directory(path);
  note("sync_directory " + path, synced.has_value());
  return synced;
}

expected<void> memory_storage::remove_all(const std::string& path) {
  if (const auto planned = failure_of(path)) return *planned;
  note("remove_all " + path, true);
  return disk_.remove_all(path);
}

void memory_storage::crash(const std::function<bool(std::size_t)>& keep) {
  disk_.lose_power(0, keep);
  fail_at_.reset();
  die_at_.reset();
}

void memory_storage::settle() {
  crash([](std::size_t) { return true; });
}

} // namespace troupe::test
