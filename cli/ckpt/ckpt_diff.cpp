// `ckpt diff`.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <ostream>

#include "cli/ckpt/ckpt_report.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/checkpoint/limits.hpp"

namespace troupe::ckpt {
namespace {

using json = nlohmann::json;

struct side {
  version_entry entry;
  std::map<std::string, stored_tensor> tensors; // by "segment/name"
  std::vector<std::string> order;
};

struct difference {
  std::string tensor;
  std::string what; // "equal", "differs", "only in A", "only in B", "shape"
  double max_abs{0};
  std::uint64_t elements{0}; // that differ in their bits
};

expected<side> open_side(const command_context& context, std::uint64_t step) {
  auto entries = entries_of(context, step);
  if (!entries) return entries.failure();
  side opened{entries->back(), {}, {}};
  const auto about = read_manifest(context.files, opened.entry.path);
  if (!about) return about.failure();
  auto index = index_version(context.files, opened.entry.path, *about);
  if (!index) return index.failure();
  for (auto& tensor : *index) {
    auto key = tensor.segment + "/" + tensor.name;
    opened.order.push_back(key);
    opened.tensors.emplace(std::move(key), std::move(tensor));
  }
  return opened;
}

void compare_values(std::span<const float> a, std::span<const float> b, difference& into) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) continue;
    ++into.elements;
    const auto distance = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (std::isnan(distance) || distance > into.max_abs)
      into.max_abs = distance; // a NaN stays: nothing exceeds it
  }
}

expected<difference> compare(storage& files, const std::string& key, const stored_tensor& a,
                             const stored_tensor& b) {
  difference found{key, "equal", 0, 0};
  if (a.shape != b.shape) {
    found.what = "shape";
    return found;
  }
  constexpr std::uint64_t chunk = limits::verify_chunk_bytes / sizeof(float);
  const auto total = a.bytes / sizeof(float);
  std::vector<float> left(std::min(chunk, total));
  std::vector<float> right(left.size());
  for (std::uint64_t at = 0; at < total; at += chunk) {
    const auto count = std::min(chunk, total - at);
    const auto left_part = std::span{left}.first(count);
    const auto right_part = std::span{right}.first(count);
    const auto offset = at * sizeof(float);
    if (auto read = files.read_at(a.path, a.offset + offset, std::as_writable_bytes(left_part)); !read)
      return read.failure();
    if (auto read = files.read_at(b.path, b.offset + offset, std::as_writable_bytes(right_part)); !read)
      return read.failure();
    compare_values(left_part, right_part, found);
  }
  if (found.elements != 0) found.what = "differs";
  return found;
}

expected<std::vector<difference>> compare_all(storage& files, const side& a, const side& b) {
  std::vector<difference> all;
  for (const auto& key : a.order) {
    const auto other = b.tensors.find(key);
    if (other == b.tensors.end()) {
      all.push_back({key, "only in A", 0, 0});
      continue;
    }
    auto found = compare(files, key, a.tensors.at(key), other->second);
    if (!found) return found.failure();
    all.push_back(std::move(*found));
  }
  for (const auto& key : b.order) {
    if (!a.tensors.contains(key)) all.push_back({key, "only in B", 0, 0});
  }
  return all;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

void print_text(const command_context& context, const std::vector<difference>& all, std::size_t different) {
  std::vector<std::vector<std::string>> rows{{"TENSOR", "RESULT", "MAX ABS", "ELEMENTS"}};
  for (const auto& one : all) {
    const bool measured = one.what == "differs";
    rows.push_back({one.tensor, one.what, measured ? number_text(one.max_abs) : "-",
                    measured ? std::to_string(one.elements) : "-"});
  }
  print_table(context.out, rows, {false, false, true, true});
  context.out << all.size() - different << " of " << all.size() << " tensors equal\n";
}

void print_object(const command_context& context, const side& a, const side& b,
                  const std::vector<difference>& all, std::size_t different) {
  json tensors = json::array();
  for (const auto& one : all) {
    json value{{"tensor", one.tensor}, {"result", one.what}, {"elements", one.elements}};
    value["max_abs"] = std::isfinite(one.max_abs) ? json(one.max_abs) : json(); // null: a NaN or an infinity
    tensors.push_back(std::move(value));
  }
  print_json(context, {{"a", {{"step", a.entry.step.value()}, {"path", a.entry.path}}},
                       {"b", {{"step", b.entry.step.value()}, {"path", b.entry.path}}},
                       {"equal", different == 0},
                       {"tensors", tensors}});
}

} // namespace

int diff_versions(const command_context& context) {
  const auto& options = context.options;
  if (!options.step || !options.other_step)
    return fail(context, {errc::bad_argument, "diff takes two steps"}, exit_usage);
  const auto exit_of = [](const error& cause) {
    return cause.code == errc::not_found ? exit_usage : exit_bad;
  };
  const auto a = open_side(context, *options.step);
  if (!a) return fail(context, a.failure(), exit_of(a.failure()));
  const auto b = open_side(context, *options.other_step);
  if (!b) return fail(context, b.failure(), exit_of(b.failure()));
  const auto all = compare_all(context.files, *a, *b);
  if (!all) return fail(context, all.failure(), exit_bad);
  const auto different = static_cast<std::size_t>(
      std::count_if(all->begin(), all->end(), [](const auto& one) { return one.what != "equal"; }));
  if (options.json) {
    print_object(context, *a, *b, *all, different);
  } else {
    print_text(context, *all, different);
  }
  return different == 0 ? exit_good : exit_bad;
}

} // namespace troupe::ckpt
