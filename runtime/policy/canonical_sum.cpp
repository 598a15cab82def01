#include "runtime/policy/canonical_sum.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#ifdef __AVX__
#include <immintrin.h>
#endif

#include "runtime/base/invariant.hpp"
#include "runtime/base/planted_bug.hpp"

namespace troupe {

namespace {

// A block goes through the whole tree while its partial sums stay in the first-level cache. Small, so that
// all contributions are read side by side: with blocks of 8 KiB the processor fetches two of them ahead, and
// then the next two.
constexpr std::size_t block_elements = 128;
constexpr std::size_t lanes = 8;
constexpr std::size_t unrolled = 4 * lanes;

using vector_type __attribute__((vector_size(lanes * sizeof(float)), aligned(4), may_alias)) = float;

vector_type load(const float* from) {
  return *reinterpret_cast<const vector_type*>(from);
}

// into[i] = left[i] + right[i]; `into` may be `left`.
template <class Store>
void add_block(float* into, const float* left, const float* right, std::size_t count, Store store) {
  std::size_t i = 0;
  for (; i + unrolled <= count; i += unrolled)
    for (std::size_t part = 0; part < unrolled; part += lanes)
      store(into + i + part, load(left + i + part) + load(right + i + part));
  for (; i < count; ++i)
    into[i] = left[i] + right[i];
}

void store_cached(float* to, vector_type value) {
  *reinterpret_cast<vector_type*>(to) = value;
}

#ifdef __AVX__
void store_streamed(float* to, vector_type value) {
  _mm256_stream_ps(to, reinterpret_cast<__m256>(value));
}
void order_streamed_stores() {
  _mm_sfence();
}
#else
void store_streamed(float* to, vector_type value) {
  store_cached(to, value);
}
void order_streamed_stores() {}
#endif

void add(float* into, const float* left, const float* right, std::size_t count, store_kind stores) {
  if (stores == store_kind::streamed)
    add_block(into, left, right, count, [](float* to, vector_type value) { store_streamed(to, value); });
  else
    add_block(into, left, right, count, [](float* to, vector_type value) { store_cached(to, value); });
}

} // namespace

void add_into(std::span<float> into, std::span<const float> from) {
  invariant(into.size() == from.size(), "CS-1: both sides of an addition have the same elements");
  add(into.data(), into.data(), from.data(), into.size(), store_kind::cached);
}

canonical_sum::canonical_sum(const shard_cuts& cuts, wire_format format)
    : first_slots_{first_slots(cuts)}
    , slots_{first_slots_.back()}
    , format_{format} {
  for (const auto& program : combine_programs(cuts))
    programs_.push_back(compile(program));
}

// Turns the postfix program into additions with named operands: the value at stack position p is either a
// contribution or scratch block p.
canonical_sum::tree canonical_sum::compile(const postfix_program& program) {
  tree made;
  std::vector<std::uint32_t> stack;
  auto scratch_blocks = scratch_.size() / block_elements;
  for (const auto& step : program.steps) {
    if (step.what == combine_step::action::push) {
      stack.push_back(first_slots_[step.rank] + step.index);
      continue;
    }
    const auto right = stack.back();
    stack.pop_back();
    const auto left = std::exchange(stack.back(), slots_ + static_cast<std::uint32_t>(stack.size()) - 1);
    made.operations.push_back({stack.back(), left, right});
    scratch_blocks = std::max(scratch_blocks, stack.size());
  }
  invariant(stack.size() == 1, "CP-3: a combine program leaves one value");
  scratch_.resize(scratch_blocks * block_elements);
  made.only = stack.back();
  return made;
}

void canonical_sum::evaluate(std::span<const float* const> contributions, std::size_t begin, std::size_t end,
                             float* result, store_kind stores, std::size_t origin, std::size_t stride) {
  invariant(contributions.size() == slots_, "CP-3: every contribution is added once");
  if (begin >= end) return;
  for (const auto& one : programs_) {
    evaluate_one(one, contributions, begin, end, result, stores, origin);
    result += stride;
  }
}

void canonical_sum::evaluate_one(const tree& one, std::span<const float* const> contributions,
                                 std::size_t begin, std::size_t end, float* result, store_kind stores,
                                 std::size_t origin) {
  const auto& operations = one.operations;
  if (operations.empty()) {
    std::memcpy(result + begin, contributions[one.only] + begin, (end - begin) * sizeof(float));
    return;
  }
  // Without partial sums, and with nothing to round while it is near, there is no need for blocks.
  const auto block = operations.size() == 1 && format_.exact() ? end - begin : block_elements;
  if (!format_.exact()) stores = store_kind::cached;
  for (auto at = begin; at < end; at += block) {
    const auto count = std::min(block, end - at);
    const auto operand = [&](std::uint32_t number) -> const float* {
      const auto slot = TROUPE_PLANTED("canonical_sum.order_reversed") ? slots_ - 1 - number : number;
      if (number < slots_) return contributions[slot] + at;
      return scratch_.data() + (number - slots_) * block_elements;
    };
    for (std::size_t i = 0; i + 1 < operations.size(); ++i) {
      const auto& op = operations[i];
      auto* into = scratch_.data() + (op.into - slots_) * block_elements;
      add(into, operand(op.left), operand(op.right), count, store_kind::cached);
      format_.round({into, count}, origin + at);
    }
    const auto& last = operations.back();
    add(result + at, operand(last.left), operand(last.right), count, stores);
    format_.round({result + at, count}, origin + at); // CS-2
  }
  if (stores == store_kind::streamed) order_streamed_stores();
}

} // namespace troupe
