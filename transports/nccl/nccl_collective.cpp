#include "transports/nccl/nccl_collective.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "transports/nccl/limits.hpp"
#include "transports/nccl/nccl_communicator.hpp"
#include "transports/nccl/sum_layout.hpp"

namespace troupe {

namespace {

constexpr std::string_view mark = "nccl:";
constexpr std::string_view fresh = "id:";
constexpr std::string_view shrunk = "without:";
constexpr std::string_view digits = "0123456789abcdef";

// "nccl:GENERATION:WORLD:SHARDS:ELEMENTS:GROUP_BYTES:", then "id:HEX" (as many ids as
// communicators) or "without:RANK,RANK".
std::string head_of(const collective_shape& shape) {
  return std::string{mark} + to_string(shape.generation) + ":" + std::to_string(shape.world) + ":" +
         std::to_string(shape.shards) + ":" + std::to_string(shape.elements) + ":" +
         std::to_string(shape.group_bytes) + ":";
}

// Of sums; of general operations.
std::size_t communicators_of(const collective_shape& shape) {
  return shape.group_bytes > 0 ? 2 : 1;
}

std::string hex_of(const nccl::unique_id& id) {
  std::string text;
  for (const char byte : id.bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += digits[value >> 4U];
    text += digits[value & 15U];
  }
  return text;
}

std::optional<nccl::unique_id> id_of(std::string_view hex) {
  nccl::unique_id id{};
  if (hex.size() != 2 * sizeof id.bytes) return std::nullopt;
  for (std::size_t i = 0; i < sizeof id.bytes; ++i) {
    const auto high = digits.find(hex[2 * i]);
    const auto low = digits.find(hex[2 * i + 1]);
    if (high == digits.npos || low == digits.npos) return std::nullopt;
    id.bytes[i] = static_cast<char>(high << 4U | low);
  }
  return id;
}

std::optional<std::vector<int>> ranks_of(std::string_view list) {
  std::vector<int> ranks;
  while (!list.empty()) {
    int rank = 0;
    const auto [stop, failure] = std::from_chars(list.data(), list.data() + list.size(), rank);
    if (failure != std::errc{} || rank < 0) return std::nullopt;
    ranks.push_back(rank);
    list.remove_prefix(static_cast<std::size_t>(stop - list.data()));
    if (!list.empty() && list.front() != ',') return std::nullopt;
    if (!list.empty()) list.remove_prefix(1);
  }
  return ranks;
}

// Everything but the place in the world.
std::optional<comm_request> request_of(std::string_view descriptor, const collective_shape& shape) {
  const auto head = head_of(shape);
  if (descriptor.size() > limits::nccl_descriptor_bytes_max || !descriptor.starts_with(head))
    return std::nullopt;
  descriptor.remove_prefix(head.size());
  comm_request request{
      .generation = shape.generation, .communicators = communicators_of(shape), .world = shape.world};
  if (descriptor.starts_with(fresh)) {
    descriptor.remove_prefix(fresh.size());
    constexpr auto digits_each = 2 * sizeof(nccl::unique_id);
    if (descriptor.size() != request.communicators * digits_each) return std::nullopt;
    for (; !descriptor.empty(); descriptor.remove_prefix(digits_each)) {
      const auto id = id_of(descriptor.substr(0, digits_each));
      if (!id) return std::nullopt;
      request.ids.push_back(*id);
    }
  } else if (descriptor.starts_with(shrunk)) {
    auto ranks = ranks_of(descriptor.substr(shrunk.size()));
    if (!ranks || ranks->empty()) return std::nullopt;
    request.origin = life_origin::shrunk;
    request.without = std::move(*ranks);
  } else {
    return std::nullopt;
  }
  return request;
}

} // namespace

bool nccl_collective::made(std::string_view descriptor) {
  return descriptor.starts_with(mark);
}

expected<std::string> nccl_collective::prepare(const collective_shape& shape) {
  if (auto possible = sum_layout::of(shape, rank_id{0}); !possible) return possible.failure();
  auto descriptor = head_of(shape) + std::string{fresh};
  for (std::size_t i = 0; i < communicators_of(shape); ++i) {
    const auto id = calls_.make_unique_id();
    if (!id) return id.failure();
    descriptor += hex_of(*id);
  }
  return descriptor;
}

expected<std::string> nccl_collective::prepare_shrunk(const collective_shape& shape,
                                                      const std::vector<std::uint32_t>& without) const {
  if (auto possible = sum_layout::of(shape, rank_id{0}); !possible) return possible.failure();
  if (!calls_.has().shrink)
    return error{errc::wrong_version, "NCCL " + nccl::version_text(calls_.has().version) +
                                          " cannot shrink a communicator; it is there from 2.27 on"};
  std::string list;
  for (const auto rank : without)
    list += (list.empty() ? "" : ",") + std::to_string(rank);
  auto descriptor = head_of(shape) + std::string{shrunk} + list;
  if (list.empty() || descriptor.size() > limits::nccl_descriptor_bytes_max)
    return error{errc::bad_argument, "a shrink without " + std::to_string(without.size()) + " ranks"};
  return descriptor;
}

expected<std::unique_ptr<communicator>>
nccl_collective::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  invariant(device_ != nullptr, "nccl collective: only a member with a device connects");
  auto request = request_of(descriptor, shape);
  if (!request)
    return error{errc::bad_argument, "'" + descriptor.substr(0, limits::nccl_descriptor_bytes_max) +
                                         "' is no meeting of NCCL for " + head_of(shape)};
  request->rank = rank.value();
  return nccl_communicator::make(device_, shape, std::move(*request));
}

} // namespace troupe
