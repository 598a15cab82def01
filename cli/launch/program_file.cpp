#include "cli/launch/program_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/program_note.hpp"

namespace troupe {
namespace {

constexpr std::size_t notes_bytes_max = 64 * 1024;
constexpr std::uint16_t headers_max = 256;

bool is_executable_file(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

std::string why_not(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::strerror(errno);
  return S_ISREG(status.st_mode) ? "it is not executable" : "it is not a file";
}

template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T* into, std::size_t bytes) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(into), static_cast<std::streamsize>(bytes));
  return file.good();
}

std::size_t padded(std::size_t bytes) {
  return (bytes + 3) / 4 * 4;
}

} // namespace

expected<std::string> find_program(const std::string& name, std::string_view search_path) {
  if (name.find('/') != std::string::npos) {
    if (is_executable_file(name)) return name;
    return error{errc::bad_argument, "PROGRAM " + name + ": cannot be started: " + why_not(name)};
  }
  for (std::size_t at = 0; at <= search_path.size();) {
    const auto end = std::min(search_path.find(':', at), search_path.size());
    const auto folder = std::string{search_path.substr(at, end - at)};
    const auto path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable_file(path)) return path;
    at = end + 1;
  }
  return error{errc::bad_argument,
               "PROGRAM " + name + ": not found in PATH; accepted: a path, or a program of PATH"};
}

bool holds_program_note(std::span<const std::byte> segment) {
  while (segment.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header{};
    std::memcpy(&header, segment.data(), sizeof header);
    const auto bytes = sizeof header + padded(header.n_namesz) + padded(header.n_descsz);
    if (bytes > segment.size()) return false;
    if (header.n_type == program_note_expected.type && header.n_namesz == program_note_expected.owner_bytes &&
        std::memcmp(segment.data() + sizeof header, program_note_expected.owner, header.n_namesz) == 0)
      return true;
    segment = segment.subspan(bytes);
  }
  return false;
}

program_kind kind_of_program(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  Elf64_Ehdr header{};
  if (!file || !read_at(file, 0, &header, sizeof header)) return program_kind::foreign;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr))
    return program_kind::foreign;
  for (std::uint16_t i = 0; i < std::min(header.e_phnum, headers_max); ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment))
      return program_kind::foreign;
    if (segment.p_type != PT_NOTE) continue;
    std::vector<std::byte> notes(std::min<std::uint64_t>(segment.p_filesz, notes_bytes_max));
    if (read_at(file, segment.p_offset, notes.data(), notes.size()) && holds_program_note(notes))
      return program_kind::troupe;
  }
  return program_kind::foreign;
}

} // namespace troupe
