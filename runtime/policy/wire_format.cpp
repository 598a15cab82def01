#include "runtime/policy/wire_format.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "runtime/base/invariant.hpp"
#include "runtime/policy/entry_list.hpp"
#include "runtime/policy/half_float.hpp"

namespace troupe {
namespace {

struct float16_form {
  static float load(std::uint16_t half) { return float16_to_float(half); }
  static std::uint16_t store(float value) { return float_to_float16(value); }
};

struct bfloat16_form {
  static float load(std::uint16_t half) { return bfloat16_to_float(half); }
  static std::uint16_t store(float value) { return float_to_bfloat16(value); }
};

template <class Work>
void with_form(element_type type, Work work) {
  type == element_type::float16 ? work(float16_form{}) : work(bfloat16_form{});
}

} // namespace

wire_format::wire_format(const collective_shape& shape)
    : wire_format{shape.wire, shape.wire_elements} {
  lists_ = exact() && shape.kept > 0;
}

wire_format::wire_format(element_type type, std::size_t rounded)
    : type_{type}
    , rounded_{rounded} {
  invariant(exact() ||
                ((type == element_type::float16 || type == element_type::bfloat16) && rounded % 16 == 0),
            "WF-1: gradients travel as float32, float16 or bfloat16");
}

void wire_format::round(std::span<float> values, std::size_t begin) const {
  if (exact() || begin >= rounded_) return;
  with_form(type_, [all = values.first(std::min(values.size(), rounded_ - begin))](auto form) {
    for (auto& value : all)
      value = form.load(form.store(value));
  });
}

std::size_t wire_format::pack(std::span<const float> values, std::size_t begin, std::byte* to) const {
  if (lists_) return pack_entries(values, to);
  const auto halves = exact() || begin >= rounded_ ? 0 : std::min(values.size(), rounded_ - begin);
  with_form(type_, [&](auto form) {
    for (std::size_t i = 0; i < halves; ++i) {
      const std::uint16_t half = form.store(values[i]);
      std::memcpy(to + i * sizeof half, &half, sizeof half);
    }
  });
  const auto whole = values.subspan(halves);
  if (!whole.empty()) std::memcpy(to + halves * sizeof(std::uint16_t), whole.data(), whole.size_bytes());
  return bytes({begin, begin + values.size()});
}

bool wire_format::unpack(std::span<const std::byte> from, std::size_t begin, std::span<float> values) const {
  if (lists_) return unpack_entries(from, values);
  if (from.size() != bytes({begin, begin + values.size()})) return false;
  const auto halves = exact() || begin >= rounded_ ? 0 : std::min(values.size(), rounded_ - begin);
  with_form(type_, [&](auto form) {
    for (std::size_t i = 0; i < halves; ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, from.data() + i * sizeof half, sizeof half);
      values[i] = form.load(half);
    }
  });
  const auto whole = values.subspan(halves);
  if (!whole.empty())
    std::memcpy(whole.data(), from.data() + halves * sizeof(std::uint16_t), whole.size_bytes());
  return true;
}

} // namespace troupe
