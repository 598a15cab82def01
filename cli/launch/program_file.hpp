// Program file: where a program lies, and whether it is a Troupe program.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/error.hpp"

namespace troupe {

enum class program_kind : unsigned char { troupe, foreign };

// As a shell would find it: a name with a slash is a path, else the folders of `search_path` (PATH) are
// tried in order. errc::bad_argument names the program.
[[nodiscard]] expected<std::string> find_program(const std::string& name, std::string_view search_path);

// Has this PT_NOTE segment the note of a Troupe program? Any bytes are safe.
[[nodiscard]] bool holds_program_note(std::span<const std::byte> segment);

// Reads the file's program headers and notes; what is no 64-bit little-endian ELF file is foreign. So is a
// script that starts a Troupe program: it has to be told (`--as troupe`).
[[nodiscard]] program_kind kind_of_program(const std::string& path);

} // namespace troupe
