#include <cstring>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <elf.h>

#include "cli/launch/program_file.hpp"
#include "cli/run/program_note.hpp"

namespace troupe {
namespace {

std::vector<std::byte> bytes_of(const program_note& note) {
  std::vector<std::byte> out(sizeof note);
  std::memcpy(out.data(), &note, sizeof note);
  return out;
}

TEST_CASE("program file: the note is found behind others") {
  auto notes = bytes_of({4, 4, NT_GNU_ABI_TAG, "GNU", 0});
  notes.erase(notes.begin() + 12 + 4, notes.begin() + 12 + 8); // "GNU" takes 4 bytes, not 8
  CHECK_FALSE(holds_program_note(notes));
  const auto ours = bytes_of(program_note_expected);
  notes.insert(notes.end(), ours.begin(), ours.end());
  CHECK(holds_program_note(notes));
}

TEST_CASE("program file: no bytes are unsafe to look at") {
  CHECK_FALSE(holds_program_note({}));
  const auto whole = bytes_of(program_note_expected);
  for (std::size_t cut = 0; cut < whole.size(); ++cut)
    CHECK_FALSE(holds_program_note(std::span{whole}.first(cut)));
  CHECK_FALSE(holds_program_note(bytes_of({0xffffffffU, 0xffffffffU, 1, "Troupe", 1})));
  CHECK_FALSE(holds_program_note(bytes_of({7, 4, 1, "Troup_", 1})));
}

TEST_CASE("program file: programs are found as a shell finds them") {
  const auto found = find_program("sh", "/nowhere:/usr/bin:/bin");
  REQUIRE(found);
  CHECK(*found == "/usr/bin/sh");
  CHECK(find_program("/bin/sh", "").has_value());
  CHECK(find_program("no-such-program", "/bin").failure().text.find("no-such-program: not found in PATH") !=
        std::string::npos);
  CHECK(find_program("/bin", "").failure().text.find("it is not a file") != std::string::npos);
  CHECK(find_program("/etc/passwd", "").failure().text.find("not executable") != std::string::npos);
}

TEST_CASE("program file: what is no Troupe program is foreign") {
  CHECK(kind_of_program("/bin/sh") == program_kind::foreign);
  CHECK(kind_of_program("/etc/passwd") == program_kind::foreign);
  CHECK(kind_of_program("/nowhere") == program_kind::foreign);
}

} // namespace
} // namespace troupe
