// Header of a safetensors file: the first eight bytes are the file's size as the system tells it.
#include "runtime/checkpoint/shard_file.hpp"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  std::uint64_t file_bytes = 0;
  if (given.size() < sizeof file_bytes) return;
  std::memcpy(&file_bytes, given.data(), sizeof file_bytes);
  const auto copy = bytes_of(given.subspan(sizeof file_bytes));
  // A file holds at least what was read of it.
  const auto read = parse_shard_header(copy, std::max<std::uint64_t>(file_bytes, copy.size()), "shard");
  if (!read) {
    require(read.failure().code == errc::corrupt, "CK-6: damage is corrupt");
    return;
  }
  std::uint64_t end = 0;
  for (const auto& tensor : read->tensors) {
    require(tensor.begin == end && tensor.end >= tensor.begin, "CK-6: tensors follow one another");
    end = tensor.end;
  }
  require(read->data_offset <= std::max<std::uint64_t>(file_bytes, copy.size()), "CK-6: data lies inside");
}

bytes file_of(std::uint64_t data_bytes, const std::vector<shard_tensor>& tensors) {
  const auto header = encode_shard_header(tensors, {{"step", "200"}});
  const std::uint64_t file_bytes = header.size() + data_bytes;
  bytes made(sizeof file_bytes + header.size());
  std::memcpy(made.data(), &file_bytes, sizeof file_bytes);
  std::ranges::copy(header, made.begin() + sizeof file_bytes);
  return made;
}

std::vector<bytes> seeds() {
  return {file_of(0, {}), file_of(96, {{"w1", {4, 4}, 0, 64}, {"b1", {8}, 64, 96}})};
}

} // namespace

const target safetensors_target{"safetensors", run, seeds, 6000};

} // namespace troupe::fuzz
