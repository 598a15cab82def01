// Shard file: float32 tensors in the safetensors format, so that other tools read them.
//
// A file is 8 bytes (length of the header, little-endian), a JSON header {name: {dtype, shape,
// data_offsets}}, and the tensors' bytes without gaps. Source: the format description of the safetensors
// project. Here the header is padded with spaces so that the data starts at a multiple of 64.
//
// Owns:     nothing; encodes and checks.
// Runs on:  any thread; `read_shard_header` on the storage executor.
// Fails:    errc::corrupt for whatever is not exactly such a file; the text says what and where.
// Invariants:
//   CK-6    nothing read from storage is used before its form, size and place were checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct shard_tensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin{0}; // bytes, from the start of the data
  std::uint64_t end{0};
};

struct shard_header {
  std::uint64_t data_offset{0};      // of the first data byte, in the file
  std::vector<shard_tensor> tensors; // in the order of their data; together they cover it
  std::map<std::string, std::string> metadata;
};

// Header of a file that holds `tensors` one after another; only names and shapes are read.
[[nodiscard]] std::vector<std::byte> encode_shard_header(std::span<const shard_tensor> tensors,
                                                         const std::map<std::string, std::string>& metadata);

// `start` holds at least the header of a file of `file_bytes` bytes; `what` names it in errors.
[[nodiscard]] expected<shard_header> parse_shard_header(std::span<const std::byte> start,
                                                        std::uint64_t file_bytes, const std::string& what);

struct shard_start {
  shard_header header;
  std::vector<std::byte> bytes; // the file up to its data, for digests
};
[[nodiscard]] expected<shard_start> read_shard_header(storage& files, const std::string& path);

} // namespace troupe
