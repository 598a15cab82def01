#include "runtime/host/system_error.hpp"

#include <cerrno>
#include <system_error>

namespace troupe {

std::string system_text(int error_number) {
  return std::system_category().message(error_number);
}

error file_error(std::string_view attempt, std::string_view path, int error_number) {
  auto code = errc::storage_failed;
  if (error_number == ENOSPC || error_number == EDQUOT) code = errc::storage_full;
  if (error_number == ENOENT) code = errc::not_found;
  return {code,
          "cannot " + std::string{attempt} + " '" + std::string{path} + "': " + system_text(error_number)};
}

} // namespace troupe
