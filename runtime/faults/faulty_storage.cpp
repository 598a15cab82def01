#include "runtime/faults/faulty_storage.hpp"

#include <algorithm>
#include <csignal>

namespace troupe {

expected<void> faulty_storage::write_file(const std::string& path,
                                          std::span<const std::span<const std::byte>> pieces) {
  if (switches_.torn_write.take()) return tear(path, pieces);
  if (switches_.full_storage.on(switches_.now()))
    return error{errc::storage_full, path + ": no space left (injected fault disk-full)"};
  return inner_.write_file(path, pieces);
}

// Half of the bytes, then the end. In simulation the process dies before its next task, and until then
// nothing that it does is seen.
expected<void> faulty_storage::tear(const std::string& path,
                                    std::span<const std::span<const std::byte>> pieces) {
  std::size_t left = 0;
  for (const auto piece : pieces)
    left += piece.size();
  left /= 2;
  std::vector<std::span<const std::byte>> half;
  for (const auto piece : pieces) {
    half.push_back(piece.first(std::min(left, piece.size())));
    left -= half.back().size();
  }
  (void)inner_.write_file(path, half);
  self_.raise_signal(SIGKILL);
  return error{errc::storage_failed, path + ": torn (injected fault torn-write)"};
}

} // namespace troupe
