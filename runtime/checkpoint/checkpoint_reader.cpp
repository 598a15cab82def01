#include "runtime/checkpoint/checkpoint_reader.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/base/digest.hpp"
#include "runtime/checkpoint/shard_file.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe {
namespace {

// One load: knows which tensors of the layout are still missing.
class state_loader {
public:
  state_loader(storage& files, const state_layout& layout, std::span<std::byte> arena)
      : files_{files}
      , layout_{layout}
      , arena_{arena}
      , seen_(layout.segments() * layout.tensors.size(), false) {
    for (std::size_t i = 0; i < layout.tensors.size(); ++i)
      by_name_.emplace(layout.tensors[i].name, i);
  }

  expected<void> load(const std::string& path, const manifest_file& file) {
    const auto segment = segment_of(file.segment);
    if (!segment) return error{errc::corrupt, path + " holds the unknown segment '" + file.segment + "'"};
    const auto bytes = files_.file_bytes(path);
    if (!bytes) return bytes.failure();
    if (*bytes != file.bytes) return error{errc::corrupt, path + " changed its size since it was verified"};
    const auto start = read_shard_header(files_, path);
    if (!start) return start.failure();
    digest_builder digest;
    digest.add(start->bytes);
    for (const auto& tensor : start->header.tensors) {
      const auto target = claim(path, *segment, tensor);
      if (!target) return target.failure();
      if (auto read = files_.read_at(path, start->header.data_offset + tensor.begin, *target); !read)
        return read;
      digest.add(*target);
    }
    if (digest.finish() != file.digest)
      return error{errc::corrupt, path + " changed its content since it was verified"};
    return {};
  }

  [[nodiscard]] expected<void> complete() const {
    const auto missing = std::find(seen_.begin(), seen_.end(), false);
    if (missing == seen_.end()) return {};
    const auto place = static_cast<std::size_t>(missing - seen_.begin());
    return error{errc::corrupt, "tensor '" + layout_.tensors[place % layout_.tensors.size()].name + "' of '" +
                                    std::string{layout_.segment_name(place / layout_.tensors.size())} +
                                    "' is in none of the files"};
  }

private:
  [[nodiscard]] std::optional<std::size_t> segment_of(std::string_view name) const {
    for (std::size_t i = 0; i < layout_.segments(); ++i) {
      if (layout_.segment_name(i) == name) return i;
    }
    return std::nullopt;
  }

  // Where a stored tensor goes, once it is known to be exactly the one that the layout has there.
  expected<std::span<std::byte>> claim(const std::string& path, std::size_t segment,
                                       const shard_tensor& tensor) {
    const auto at = by_name_.find(tensor.name);
    if (at == by_name_.end())
      return error{errc::corrupt, path + " holds the unknown tensor '" + tensor.name + "'"};
    if (layout_.tensors[at->second].shape != tensor.shape)
      return error{errc::corrupt, path + " holds tensor '" + tensor.name + "' in another shape"};
    const auto place = segment * layout_.tensors.size() + at->second;
    if (seen_[place]) return error{errc::corrupt, path + " holds tensor '" + tensor.name + "' a second time"};
    seen_[place] = true;
    return tensor_bytes(layout_, arena_, segment, at->second);
  }

  storage& files_;
  const state_layout& layout_;
  std::span<std::byte> arena_;
  std::vector<bool> seen_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

} // namespace

expected<checkpoint_metadata> load_version(storage& files, const verified_version& version,
                                           const state_layout& layout, std::span<std::byte> arena) {
  if (auto valid = validate(layout); !valid) return valid.failure();
  if (arena.size() < layout.state_bytes())
    return error{errc::bad_argument, "the state arena is smaller than the state"};
  if (auto belongs = check_belongs(version.manifest, layout, version.path); !belongs)
    return belongs.failure();
  const auto state = arena.first(layout.state_bytes());
  std::fill(state.begin(), state.end(), std::byte{0});
  state_loader loader{files, layout, state};
  for (const auto& file : version.manifest.files) {
    if (auto loaded = loader.load(join_path(version.path, file.name), file); !loaded) return loaded.failure();
  }
  if (auto whole = loader.complete(); !whole)
    return error{whole.failure().code, version.path + ": " + whole.failure().text};
  const auto& said = version.manifest.metadata.weights_digest;
  if (!said.empty() && weights_digest_of(layout, state) != said)
    return error{errc::corrupt, version.path + ": the weights do not have the digest in the manifest"};
  return version.manifest.metadata;
}

expected<std::vector<stored_tensor>> index_version(storage& files, const std::string& path,
                                                   const manifest& version) {
  std::vector<stored_tensor> index;
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& file : version.files) {
    const auto file_path = join_path(path, file.name);
    const auto start = read_shard_header(files, file_path);
    if (!start) return start.failure();
    for (const auto& tensor : start->header.tensors) {
      if (!seen.emplace(file.segment, tensor.name).second)
        return error{errc::corrupt, file_path + " holds tensor '" + tensor.name + "' a second time"};
      index.push_back({file.segment, tensor.name, tensor.shape, file_path,
                       start->header.data_offset + tensor.begin, tensor.end - tensor.begin});
    }
  }
  return index;
}

} // namespace troupe
