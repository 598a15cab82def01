#include "runtime/host/posix_storage.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/host/system_error.hpp"
#include "runtime/host/unique_fd.hpp"

namespace troupe {
namespace {

constexpr std::size_t pieces_each_call_max = 64;

unique_fd open_file(const std::string& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return unique_fd{fd};
}

// Writes everything; 0, or the error number.
int write_all(int fd, std::span<const std::span<const std::byte>> pieces) {
  std::size_t first = 0;  // the piece to continue with
  std::size_t offset = 0; // and where in it
  while (first < pieces.size()) {
    std::array<iovec, pieces_each_call_max> parts{};
    std::size_t count = 0;
    for (auto i = first; i < pieces.size() && count < parts.size(); ++i, ++count) {
      const auto rest = pieces[i].subspan(i == first ? offset : 0);
      parts[count] = {const_cast<std::byte*>(rest.data()), rest.size()}; // writev only reads
    }
    const auto written = ::writev(fd, parts.data(), static_cast<int>(count));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    auto left = static_cast<std::size_t>(written);
    while (first < pieces.size() && left >= pieces[first].size() - offset) {
      left -= pieces[first].size() - offset;
      offset = 0;
      ++first;
    }
    offset += left;
  }
  return 0;
}

// Reads exactly `into`, or as much as there is; the count, or -1 with errno.
ssize_t read_fully(int fd, std::uint64_t offset, std::span<std::byte> into) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto got = ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

error too_short(const std::string& path, std::uint64_t needed, std::uint64_t there) {
  return {errc::corrupt, "'" + path + "' is too short: it needs " + std::to_string(needed) +
                             " bytes and has " + std::to_string(there)};
}

} // namespace

expected<void> posix_storage::create_directories(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return file_error("create directory", path, failed.value());
  return {};
}

expected<void> posix_storage::write_file(const std::string& path,
                                         std::span<const std::span<const std::byte>> pieces) {
  auto fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return file_error("create", path, errno);
  const bool regular = S_ISREG(status.st_mode); // a device or pipe is neither flushed nor removed
  int failed = write_all(fd.get(), pieces);
  if (failed == 0 && regular && ::fsync(fd.get()) != 0) failed = errno;
  if (::close(fd.release()) != 0 && failed == 0) failed = errno;
  if (failed == 0) return {};
  if (regular) ::unlink(path.c_str());
  return file_error("write", path, failed);
}

expected<std::vector<std::byte>> posix_storage::read_file(const std::string& path, std::uint64_t bytes_max) {
  const auto fd = open_file(path, O_RDONLY);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return file_error("read", path, errno);
  const auto bytes = static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
  if (bytes > bytes_max)
    return error{errc::too_large, "'" + path + "' has " + std::to_string(bytes) + " bytes; at most " +
                                      std::to_string(bytes_max) + " are allowed"};
  std::vector<std::byte> content(bytes);
  const auto got = read_fully(fd.get(), 0, content);
  if (got < 0) return file_error("read", path, errno);
  if (static_cast<std::uint64_t>(got) != bytes)
    return too_short(path, bytes, static_cast<std::uint64_t>(got));
  return content;
}

expected<void> posix_storage::read_at(const std::string& path, std::uint64_t offset,
                                      std::span<std::byte> into) {
  const auto fd = open_file(path, O_RDONLY);
  if (!fd) return file_error("read", path, errno);
  const auto got = read_fully(fd.get(), offset, into);
  if (got < 0) return file_error("read", path, errno);
  if (static_cast<std::size_t>(got) != into.size())
    return too_short(path, offset + into.size(), offset + static_cast<std::uint64_t>(got));
  return {};
}

expected<std::uint64_t> posix_storage::file_bytes(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return file_error("find", path, errno);
  if (!S_ISREG(status.st_mode)) return error{errc::storage_failed, "'" + path + "' is not a file"};
  return static_cast<std::uint64_t>(status.st_size);
}

expected<std::vector<std::string>> posix_storage::list(const std::string& directory) {
  std::error_code failed;
  std::vector<std::string> names;
  std::filesystem::directory_iterator entry{directory, failed};
  for (; !failed && entry != std::filesystem::directory_iterator{}; entry.increment(failed))
    names.push_back(entry->path().filename().string());
  if (failed) return file_error("list", directory, failed.value());
  std::sort(names.begin(), names.end());
  return names;
}

expected<void> posix_storage::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return file_error("rename to '" + to + "'", from, errno);
  return {};
}

expected<void> posix_storage::sync_directory(const std::string& path) {
  const auto fd = open_file(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return file_error("open directory", path, errno);
  if (::fsync(fd.get()) != 0) return file_error("flush directory", path, errno);
  return {};
}

expected<void> posix_storage::remove_all(const std::string& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (failed) return file_error("remove", path, failed.value());
  return {};
}

} // namespace troupe
