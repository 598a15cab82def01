#include "runtime/train/parameter_store.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"

namespace troupe {

namespace {

constexpr std::size_t alignment_elements = 16; // 64 bytes: a cache line, and an AVX-512 register

std::size_t padded(std::size_t elements) {
  return (elements + alignment_elements - 1) / alignment_elements * alignment_elements;
}

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (const auto extent : shape) {
    if (text.size() > 1) text += ",";
    text += std::to_string(extent);
  }
  text += "]";
  return text;
}

std::size_t elements_of(const std::string& name, const std::vector<std::size_t>& shape) {
  constexpr auto elements_max = limits::bulk_bytes_max / sizeof(float);
  std::size_t elements = 1;
  for (const auto extent : shape) {
    if (extent == 0 || elements > elements_max / extent)
      throw std::invalid_argument{"parameter '" + name + "': shape " + shape_text(shape) +
                                  " is empty or too large"};
    elements *= extent;
  }
  return elements;
}

} // namespace

std::string arena_layout::text() const {
  std::string text;
  for (const auto& spec : parameters)
    text.append(spec.name)
        .append(" ")
        .append(shape_text(spec.shape))
        .append(" @")
        .append(std::to_string(spec.offset))
        .append("; ");
  text.append("|");
  for (const auto& slot : slots)
    text.append(" ").append(slot);
  return text;
}

std::string arena_layout::fingerprint() const {
  const auto whole = text();
  return digest_of(std::as_bytes(std::span{whole}));
}

void add_part(digest_builder& digest, const arena_layout& layout, std::span<const float> arena,
              std::size_t part) {
  static_assert(std::endian::native == std::endian::little, "arenas are stored and digested little-endian");
  invariant(arena.size() == layout.elements(), "PA-2: an arena has the size of its layout");
  for (const auto& spec : layout.parameters)
    digest.add(std::as_bytes(arena.subspan(layout.part_offset(part) + spec.offset, spec.elements)));
}

std::string weights_digest(const arena_layout& layout, std::span<const float> arena) {
  digest_builder digest;
  add_part(digest, layout, arena, 0);
  return digest.finish();
}

parameter_store::parameter_store(std::uint64_t seed)
    : seed_{seed} {}

parameter parameter_store::declare(std::string name, std::vector<std::size_t> shape, initializer initial) {
  if (!arena_.empty()) throw std::invalid_argument{"parameter '" + name + "': declared after the start"};
  if (name.empty()) throw std::invalid_argument{"a parameter needs a name"};
  if (name.size() > limits::name_bytes_max)
    throw std::invalid_argument{"parameter '" + name.substr(0, 32) + "...': the name is too long"};
  if (shape.empty()) throw std::invalid_argument{"parameter '" + name + "': the shape is empty"};
  if (!initial) throw std::invalid_argument{"parameter '" + name + "': it has no initial value"};
  const auto same_name = [&name](const parameter_spec& spec) { return spec.name == name; };
  if (std::ranges::any_of(layout_.parameters, same_name))
    throw std::invalid_argument{"parameter '" + name + "': declared twice"};

  const auto elements = elements_of(name, shape);
  layout_.parameters.push_back({std::move(name), std::move(shape), elements, layout_.part_elements});
  layout_.part_elements += padded(elements);
  initial_.push_back(std::move(initial));
  return parameter{layout_.parameters.size() - 1};
}

initializer parameter_store::uniform(std::string_view name, float bound) const {
  return [rng = counter_rng{seed_, stream_of(name)}, bound](std::uint64_t index) {
    return (2.0F * rng.uniform(index) - 1.0F) * bound;
  };
}

void parameter_store::freeze(std::span<const std::string_view> slot_names) {
  if (!arena_.empty()) throw std::invalid_argument{"the parameters were frozen before"};
  if (layout_.parameters.empty()) throw std::invalid_argument{"the model declares no parameter"};
  layout_.slots.assign(slot_names.begin(), slot_names.end());
  if (layout_.bytes() > limits::bulk_bytes_max)
    throw std::invalid_argument{"the model's state exceeds " + std::to_string(limits::bulk_bytes_max) +
                                " bytes"};
  memory_ = touched_memory{layout_.bytes()};
  arena_ = memory_.as<float>();
  initialise();
}

void parameter_store::initialise() {
  std::ranges::fill(arena_, 0.0F);
  for (std::size_t p = 0; p < initial_.size(); ++p) {
    const auto& spec = layout_.parameters[p];
    for (std::size_t i = 0; i < spec.elements; ++i)
      arena_[spec.offset + i] = initial_[p](i);
  }
}

std::span<const float> parameter_store::values(parameter p) const {
  const auto& spec = layout_.parameters[p.index()];
  return arena_.subspan(spec.offset, spec.elements);
}

std::span<float> parameter_store::slot(std::size_t index) const {
  invariant(index < layout_.slots.size(), "PA-2: only declared optimizer slots are used");
  return arena_.subspan(layout_.part_offset(index + 1), layout_.part_elements);
}

} // namespace troupe
