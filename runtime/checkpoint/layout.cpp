#include "runtime/checkpoint/layout.hpp"

#include <algorithm>
#include <bit>
#include <set>

#include "runtime/base/digest.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/checkpoint/json_text.hpp"
#include "runtime/checkpoint/limits.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the state is stored as it lies in memory");

namespace {

constexpr std::string_view parameters_segment = "parameters";

error bad(std::string text) {
  return {errc::bad_argument, "state layout: " + std::move(text)};
}

// Slot names become part of file names.
bool is_slot_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 64 && name != parameters_segment &&
         std::all_of(name.begin(), name.end(), allowed);
}

expected<void> validate_slots(const state_layout& layout) {
  if (layout.slots.size() > limits::checkpoint_slots_max) return bad("too many optimizer slots");
  std::set<std::string_view> seen;
  for (const auto& slot : layout.slots) {
    if (!is_slot_name(slot)) return bad("'" + slot + "' is not a slot name ([A-Za-z0-9_], at most 64)");
    if (!seen.insert(slot).second) return bad("slot '" + slot + "' appears twice");
  }
  return {};
}

expected<void> validate_tensor(const state_layout& layout, const tensor_spec& tensor) {
  if (tensor.name.empty() || tensor.name.size() > limits::name_bytes_max || !is_utf8(tensor.name))
    return bad("a tensor's name is empty, too long or not UTF-8");
  if (tensor.name == "__metadata__") return bad("a tensor may not be named '__metadata__'");
  if (tensor.shape.size() > limits::checkpoint_dimensions_max)
    return bad("tensor '" + tensor.name + "' has too many dimensions");
  const auto elements = shape_product(tensor.shape, limits::parameter_elements_max);
  if (!elements || *elements == 0) return bad("tensor '" + tensor.name + "' is empty or too large");
  if (tensor.offset_elements > layout.parameter_elements ||
      *elements > layout.parameter_elements - tensor.offset_elements)
    return bad("tensor '" + tensor.name + "' lies outside its segment");
  return {};
}

expected<void> validate_placement(const state_layout& layout) {
  std::vector<const tensor_spec*> by_offset;
  std::set<std::string_view> names;
  for (const auto& tensor : layout.tensors) {
    if (!names.insert(tensor.name).second) return bad("tensor '" + tensor.name + "' appears twice");
    by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto* a, const auto* b) { return a->offset_elements < b->offset_elements; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const auto& before = *by_offset[i - 1];
    if (before.offset_elements + before.elements() > by_offset[i]->offset_elements)
      return bad("tensors '" + before.name + "' and '" + by_offset[i]->name + "' overlap");
  }
  return {};
}

void add_text(digest_builder& builder, std::string_view text) {
  const std::uint64_t size = text.size(); // length first: no two lists of names run together
  builder.add(std::as_bytes(std::span{&size, 1}));
  builder.add(std::as_bytes(std::span{text.data(), text.size()}));
}

} // namespace

expected<std::uint64_t> shape_product(std::span<const std::uint64_t> shape, std::uint64_t elements_max) {
  std::uint64_t product = 1;
  for (const auto dimension : shape) {
    if (dimension != 0 && product > elements_max / dimension)
      return error{errc::too_large, "a tensor of more than " + std::to_string(elements_max) + " elements"};
    product *= dimension;
  }
  return product;
}

std::uint64_t tensor_spec::elements() const {
  std::uint64_t product = 1;
  for (const auto dimension : shape)
    product *= dimension;
  return product;
}

std::string_view state_layout::segment_name(std::size_t segment) const {
  return segment == 0 ? parameters_segment : std::string_view{slots[segment - 1]};
}

std::string state_layout::fingerprint() const {
  digest_builder builder;
  add_text(builder, "float32");
  for (const auto& tensor : tensors) {
    add_text(builder, tensor.name);
    const std::uint64_t rank = tensor.shape.size();
    builder.add(std::as_bytes(std::span{&rank, 1}));
    builder.add(std::as_bytes(std::span{tensor.shape}));
  }
  add_text(builder, "slots");
  for (const auto& slot : slots)
    add_text(builder, slot);
  return builder.finish();
}

expected<void> validate(const state_layout& layout) {
  if (layout.program.empty() || layout.program.size() > limits::name_bytes_max || !is_utf8(layout.program))
    return bad("the program's name is empty, too long or not UTF-8");
  if (layout.tensors.empty()) return bad("no tensors");
  if (layout.tensors.size() > limits::checkpoint_tensors_max) return bad("too many tensors");
  if (layout.parameter_elements > limits::parameter_elements_max) return bad("the state is too large");
  if (auto slots = validate_slots(layout); !slots) return slots;
  for (const auto& tensor : layout.tensors) {
    if (auto one = validate_tensor(layout, tensor); !one) return one;
  }
  return validate_placement(layout);
}

std::span<std::byte> tensor_bytes(const state_layout& layout, std::span<std::byte> arena, std::size_t segment,
                                  std::size_t tensor) {
  const auto& spec = layout.tensors[tensor];
  const auto begin = segment * layout.parameter_elements + spec.offset_elements;
  return arena.subspan(begin * sizeof(float), spec.elements() * sizeof(float));
}

std::span<const std::byte> tensor_bytes(const state_layout& layout, std::span<const std::byte> arena,
                                        std::size_t segment, std::size_t tensor) {
  const auto& spec = layout.tensors[tensor];
  const auto begin = segment * layout.parameter_elements + spec.offset_elements;
  return arena.subspan(begin * sizeof(float), spec.elements() * sizeof(float));
}

std::string weights_digest_of(const state_layout& layout, std::span<const std::byte> arena) {
  digest_builder builder;
  for (std::size_t i = 0; i < layout.tensors.size(); ++i)
    builder.add(tensor_bytes(layout, arena, 0, i));
  return builder.finish();
}

} // namespace troupe
