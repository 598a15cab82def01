// Program note: how a Troupe program is told apart from others without running it.
//
// `troupe::run` puts an ELF note (owner "Troupe", type 1) into every program that it is linked into; notes
// survive `strip`. `troupe run` looks for it (cli/launch/program_file.hpp).
#pragma once

#include <cstdint>

namespace troupe {

struct program_note {
  std::uint32_t owner_bytes;
  std::uint32_t content_bytes;
  std::uint32_t type;
  char owner[8]; // with its terminating zero, padded to 4 bytes
  std::uint32_t content;
};

inline constexpr program_note program_note_expected{7, 4, 1, "Troupe", 1};

} // namespace troupe
