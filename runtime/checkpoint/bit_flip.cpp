#include "runtime/checkpoint/bit_flip.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "runtime/base/limits.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/shard_file.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe {
namespace {

expected<version_entry> choose(storage& files, const std::string& directory, std::string_view which) {
  std::optional<step_id> wanted;
  if (which != "newest") {
    std::uint64_t step = 0;
    const auto* end = which.data() + which.size();
    const auto [rest, status] = std::from_chars(which.data(), end, step);
    if (status != std::errc{} || rest != end)
      return error{errc::bad_argument, "checkpoint '" + std::string{which} + "' is not 'newest' or a step"};
    wanted = step_id{step};
  }
  const auto listing = catalog{files, directory}.list();
  if (!listing) return listing.failure();
  for (auto entry = listing->versions.rbegin(); entry != listing->versions.rend(); ++entry) {
    if (wanted ? entry->step == *wanted : static_cast<bool>(read_manifest(files, entry->path))) return *entry;
  }
  return error{errc::not_found, directory + " holds no checkpoint '" + std::string{which} + "' to damage"};
}

} // namespace

expected<flipped_bit> flip_bit(storage& files, const std::string& directory, std::string_view which) {
  const auto entry = choose(files, directory, which);
  if (!entry) return entry.failure();
  const auto version = read_manifest(files, entry->path);
  if (!version) return version.failure();
  const auto path = join_path(entry->path, version->files.front().name);
  const auto start = read_shard_header(files, path);
  if (!start) return start.failure();
  auto bytes = files.read_file(path, limits::bulk_bytes_max);
  if (!bytes) return bytes.failure();

  constexpr unsigned bit = 3;
  const auto data_offset = start->header.data_offset;
  const auto byte = data_offset + (bytes->size() - data_offset) / 2;
  if (byte >= bytes->size()) return error{errc::corrupt, path + " holds no data"};
  (*bytes)[byte] ^= std::byte{1U << bit};
  const std::array pieces{std::span<const std::byte>{*bytes}};
  if (auto written = files.write_file(path, pieces); !written) return written.failure();
  return flipped_bit{entry->step, path, byte, bit};
}

} // namespace troupe
