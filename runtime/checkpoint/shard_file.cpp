#include "runtime/checkpoint/shard_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <nlohmann/json.hpp>

#include "runtime/base/limits.hpp"
#include "runtime/checkpoint/json_text.hpp"
#include "runtime/checkpoint/layout.hpp"
#include "runtime/checkpoint/limits.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::size_t alignment = 64;
constexpr const char* metadata_key = "__metadata__";

error corrupt(const std::string& what, const std::string& problem) {
  return {errc::corrupt, what + ": " + problem};
}

std::uint64_t load_le64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = length_bytes; i > 0; --i)
    value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i - 1]);
  return value;
}

void store_le64(std::uint64_t value, std::span<std::byte> bytes) {
  for (std::size_t i = 0; i < length_bytes; ++i)
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
}

// The header's length, once it is known to lie inside the file and the limit.
expected<std::uint64_t> checked_length(std::span<const std::byte> start, std::uint64_t file_bytes,
                                       const std::string& what) {
  if (start.size() < length_bytes || file_bytes < length_bytes)
    return corrupt(what, "too short for a safetensors file");
  const auto length = load_le64(start);
  if (length > limits::shard_header_bytes_max)
    return corrupt(what, "header of " + std::to_string(length) + " bytes is larger than the limit");
  if (length > file_bytes - length_bytes)
    return corrupt(what, "header of " + std::to_string(length) + " bytes runs past the end of the file");
  return length;
}

expected<std::map<std::string, std::string>> read_metadata(const json& entry, const std::string& what) {
  std::map<std::string, std::string> metadata;
  if (!entry.is_object()) return corrupt(what, "__metadata__ is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return corrupt(what, "__metadata__ '" + key + "' is not a text");
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

expected<std::vector<std::uint64_t>> read_numbers(const json& list, const std::string& what) {
  std::vector<std::uint64_t> numbers;
  for (const auto& item : list) {
    if (!item.is_number_unsigned()) return corrupt(what, "a dimension or offset is not a whole number");
    numbers.push_back(item.get<std::uint64_t>());
  }
  return numbers;
}

expected<shard_tensor> read_tensor(const std::string& name, const json& entry, std::uint64_t data_bytes,
                                   const std::string& file) {
  const auto what = file + ": tensor '" + name + "'";
  if (name.empty() || name.size() > limits::name_bytes_max)
    return corrupt(file, "a tensor's name is too long");
  object_reader fields{entry, what};
  const auto dtype = fields.text("dtype", 16);
  const auto shape_list = fields.array("shape", limits::checkpoint_dimensions_max);
  const auto offset_list = fields.array("data_offsets", 2);
  if (auto read = fields.result(); !read) return read.failure();
  if (dtype != "F32") return corrupt(what, "dtype is '" + dtype + "', only F32 is read");
  if (entry.size() != 3) return corrupt(what, "has unknown fields");

  auto shape = read_numbers(shape_list, what);
  auto offsets = read_numbers(offset_list, what);
  if (!shape) return shape.failure();
  if (!offsets) return offsets.failure();
  if (offsets->size() != 2) return corrupt(what, "data_offsets are not two numbers");
  shard_tensor tensor{name, std::move(*shape), (*offsets)[0], (*offsets)[1]};
  if (tensor.begin > tensor.end || tensor.end > data_bytes)
    return corrupt(what, "data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) +
                             "] lie outside the data of " + std::to_string(data_bytes) + " bytes");
  const auto elements = shape_product(tensor.shape, limits::parameter_elements_max);
  if (!elements || *elements * sizeof(float) != tensor.end - tensor.begin)
    return corrupt(what, "its shape does not give the " + std::to_string(tensor.end - tensor.begin) +
                             " bytes of its data");
  return tensor;
}

// The format wants the data covered exactly: no holes, no overlaps, nothing after the last tensor.
expected<void> check_cover(std::vector<shard_tensor>& tensors, std::uint64_t data_bytes,
                           const std::string& what) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t covered = 0;
  for (const auto& tensor : tensors) {
    if (tensor.begin < covered) return corrupt(what, "tensor '" + tensor.name + "' overlaps another");
    if (tensor.begin > covered) return corrupt(what, "a hole before tensor '" + tensor.name + "'");
    covered = tensor.end;
  }
  if (covered != data_bytes)
    return corrupt(what, std::to_string(data_bytes - covered) + " bytes belong to no tensor");
  return {};
}

} // namespace

std::vector<std::byte> encode_shard_header(std::span<const shard_tensor> tensors,
                                           const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty()) header[metadata_key] = metadata;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    std::uint64_t bytes = sizeof(float);
    for (const auto dimension : tensor.shape)
      bytes *= dimension;
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  auto text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  const auto unpadded = length_bytes + text.size();
  text.append((unpadded + alignment - 1) / alignment * alignment - unpadded, ' ');

  std::vector<std::byte> bytes(length_bytes + text.size());
  store_le64(text.size(), bytes);
  std::memcpy(bytes.data() + length_bytes, text.data(), text.size());
  return bytes;
}

expected<shard_header> parse_shard_header(std::span<const std::byte> start, std::uint64_t file_bytes,
                                          const std::string& what) {
  const auto length = checked_length(start, file_bytes, what);
  if (!length) return length.failure();
  if (start.size() - length_bytes < *length) return corrupt(what, "the header is cut off");
  const std::string_view text{reinterpret_cast<const char*>(start.data()) + length_bytes, *length};
  if (text.empty() || text.front() != '{') return corrupt(what, "the header does not start with '{'");
  auto parsed = parse_strict_json(text, what + ": header");
  if (!parsed) return parsed.failure();
  if (parsed->size() > limits::checkpoint_tensors_max + 1) return corrupt(what, "too many tensors");

  shard_header header;
  header.data_offset = length_bytes + *length;
  const auto data_bytes = file_bytes - header.data_offset;
  for (const auto& [name, entry] : parsed->items()) {
    if (name == metadata_key) {
      auto metadata = read_metadata(entry, what);
      if (!metadata) return metadata.failure();
      header.metadata = std::move(*metadata);
      continue;
    }
    auto tensor = read_tensor(name, entry, data_bytes, what);
    if (!tensor) return tensor.failure();
    header.tensors.push_back(std::move(*tensor));
  }
  if (auto cover = check_cover(header.tensors, data_bytes, what); !cover) return cover.failure();
  return header;
}

expected<shard_start> read_shard_header(storage& files, const std::string& path) {
  const auto file_bytes = files.file_bytes(path);
  if (!file_bytes) return file_bytes.failure();
  std::vector<std::byte> start(std::min<std::uint64_t>(length_bytes, *file_bytes));
  if (auto read = files.read_at(path, 0, start); !read) return read.failure();
  const auto length = checked_length(start, *file_bytes, path);
  if (!length) return length.failure();
  start.resize(length_bytes + *length);
  if (auto read = files.read_at(path, length_bytes, std::span{start}.subspan(length_bytes)); !read)
    return read.failure();
  auto header = parse_shard_header(start, *file_bytes, path);
  if (!header) return header.failure();
  return shard_start{std::move(*header), std::move(start)};
}

} // namespace troupe
