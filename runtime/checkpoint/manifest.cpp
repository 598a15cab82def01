#include "runtime/checkpoint/manifest.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <nlohmann/json.hpp>

#include "runtime/base/digest.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/checkpoint/json_text.hpp"
#include "runtime/checkpoint/limits.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;

constexpr const char* own_digest_key = "manifest_digest";
constexpr std::size_t digest_hex = 32;

std::string dump(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string own_digest(const json& without_digest) {
  const auto canonical = dump(without_digest, -1);
  return digest_of(std::as_bytes(std::span{canonical}));
}

bool parse_hex64(std::string_view text, std::uint64_t& value) {
  const auto* end = text.data() + text.size();
  const auto [rest, status] = std::from_chars(text.data(), end, value, 16);
  return status == std::errc{} && rest == end;
}

job_id read_job(object_reader& fields) {
  const auto text = fields.text("job", digest_hex);
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  if (text.size() != digest_hex || !parse_hex64(std::string_view{text}.substr(0, 16), high) ||
      !parse_hex64(std::string_view{text}.substr(16), low))
    fields.complain("has a 'job' that is not an id");
  return job_id{high, low};
}

checkpoint_metadata read_metadata(object_reader& fields) {
  checkpoint_metadata metadata;
  metadata.job = read_job(fields);
  metadata.step = step_id{fields.number("step")};
  metadata.generation = generation_id{fields.number("generation")};
  metadata.sample_cursor = fields.number("sample_cursor");
  metadata.seed = fields.number("seed");
  metadata.shards = static_cast<std::uint32_t>(fields.number("shards", UINT32_MAX));
  metadata.global_batch = static_cast<std::uint32_t>(fields.number("global_batch", UINT32_MAX));
  metadata.world = static_cast<std::uint32_t>(fields.number("world", UINT32_MAX));
  metadata.optimizer = fields.text("optimizer", limits::manifest_text_bytes_max);
  metadata.schedule = fields.text("schedule", limits::manifest_text_bytes_max);
  metadata.wire = fields.text_if_there("wire", limits::name_bytes_max);
  metadata.top_k = fields.text_if_there("top_k", limits::name_bytes_max);
  metadata.state_digest = fields.text("state_digest", limits::name_bytes_max);
  metadata.weights_digest = fields.text("weights_digest", digest_hex);
  metadata.written_unix_s = fields.number("written_unix_s");
  return metadata;
}

expected<std::vector<manifest_file>> read_files(const json& list, const std::string& what) {
  std::vector<manifest_file> found;
  std::set<std::string> names;
  for (const auto& item : list) {
    object_reader fields{item, what + " file " + std::to_string(found.size())};
    manifest_file file;
    file.name = fields.text("name", limits::name_bytes_max);
    file.segment = fields.text("segment", limits::name_bytes_max);
    file.bytes = fields.number("bytes");
    file.digest = fields.text("digest", digest_hex);
    if (!is_version_file_name(file.name)) fields.complain("has a bad name '" + file.name + "'");
    if (!names.insert(file.name).second) fields.complain("repeats the name '" + file.name + "'");
    if (file.digest.size() != digest_hex) fields.complain("has a digest of the wrong length");
    if (auto read = fields.result(); !read) return read.failure();
    found.push_back(std::move(file));
  }
  return found;
}

// What differs most often: another optimizer, or residuals.
std::string slot_that_differs(const manifest& version, const state_layout& layout) {
  const auto stored = [&](std::string_view slot) {
    return std::ranges::any_of(version.files, [&](const auto& file) { return file.segment == slot; });
  };
  for (const auto& slot : layout.slots)
    if (!stored(slot)) return ", which needs the slot '" + slot + "'";
  for (const auto& file : version.files)
    if (file.segment != layout.segment_name(0) &&
        std::ranges::find(layout.slots, file.segment) == layout.slots.end())
      return ", which has no slot '" + file.segment + "'";
  return {};
}

} // namespace

std::uint64_t manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files)
    sum += file.bytes;
  return sum;
}

std::string encode_manifest(const manifest& version) {
  const auto& m = version.metadata;
  json list = json::array();
  for (const auto& file : version.files)
    list.push_back(
        {{"name", file.name}, {"segment", file.segment}, {"bytes", file.bytes}, {"digest", file.digest}});
  json value{{"schema", version.schema},
             {"program", version.program},
             {"layout", version.layout},
             {"job", to_string(m.job)},
             {"step", m.step.value()},
             {"generation", m.generation.value()},
             {"sample_cursor", m.sample_cursor},
             {"seed", m.seed},
             {"shards", m.shards},
             {"global_batch", m.global_batch},
             {"world", m.world},
             {"optimizer", m.optimizer},
             {"schedule", m.schedule},
             {"state_digest", m.state_digest},
             {"weights_digest", m.weights_digest},
             {"written_unix_s", m.written_unix_s},
             {"files", std::move(list)}};
  if (!m.wire.empty()) value["wire"] = m.wire;
  if (!m.top_k.empty()) value["top_k"] = m.top_k;
  value[own_digest_key] = own_digest(value);
  return dump(value, 2) + "\n";
}

expected<manifest> parse_manifest(std::span<const std::byte> text, const std::string& what) {
  if (text.size() > limits::manifest_bytes_max) return error{errc::corrupt, what + " is too large"};
  auto parsed = parse_strict_json({reinterpret_cast<const char*>(text.data()), text.size()}, what);
  if (!parsed) return parsed.failure();

  object_reader fields{*parsed, what};
  const auto said = fields.text(own_digest_key, digest_hex);
  manifest version;
  version.schema = static_cast<std::uint32_t>(fields.number("schema", UINT32_MAX));
  if (auto read = fields.result(); !read) return read.failure();
  auto body = *parsed;
  body.erase(own_digest_key);
  if (own_digest(body) != said)
    return error{errc::corrupt, what + " does not match its own digest: it was damaged or edited"};
  if (version.schema > manifest_schema)
    return error{errc::wrong_version, what + " has schema " + std::to_string(version.schema) +
                                          ", this build reads up to " + std::to_string(manifest_schema)};
  if (version.schema == 0) return error{errc::corrupt, what + " has schema 0"};

  version.program = fields.text("program", limits::name_bytes_max);
  version.layout = fields.text("layout", digest_hex);
  version.metadata = read_metadata(fields);
  const auto list = fields.array("files", limits::checkpoint_files_max);
  if (auto read = fields.result(); !read) return read.failure();
  auto listed = read_files(list, what);
  if (!listed) return listed.failure();
  if (listed->empty()) return error{errc::corrupt, what + " names no files"};
  version.files = std::move(*listed);
  return version;
}

expected<void> check_belongs(const manifest& version, const state_layout& layout, const std::string& what) {
  const auto fingerprint = layout.fingerprint();
  if (version.program == layout.program && version.layout == fingerprint) return {};
  return error{errc::wrong_program, what + " was written by program '" + version.program + "' (layout " +
                                        version.layout + "), this is '" + layout.program + "' (layout " +
                                        fingerprint + ")" + slot_that_differs(version, layout)};
}

} // namespace troupe
