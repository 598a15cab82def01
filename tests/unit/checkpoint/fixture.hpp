// What the checkpoint tests share: a small layout, states that differ by a seed, and a way to write a
// version.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/checkpoint/layout.hpp"
#include "tests/support/memory_storage.hpp"

namespace troupe::test {

inline constexpr const char* checkpoint_directory = "/job/ckpt";
inline const incarnation_id test_incarnation{0x11, 0x22};

inline state_layout small_layout() {
  return {"toy", {{"fc1.weight", {3, 5}, 0}, {"fc1.bias", {5}, 16}, {"scale", {}, 32}}, 48, {"momentum"}};
}

inline bool is_padding(std::size_t element) {
  const auto inner = element % 48;
  return inner == 15 || (inner >= 21 && inner < 32) || inner >= 33;
}

inline std::vector<float> small_state(float seed) {
  std::vector<float> state(96);
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = is_padding(i) ? 0.0F : seed + static_cast<float>(i) / 7.0F;
  return state;
}

inline checkpoint_metadata metadata_at(std::uint64_t step) {
  checkpoint_metadata metadata;
  metadata.job = job_id{0xabcdef, 0x123456789};
  metadata.step = step_id{step};
  metadata.generation = generation_id{2};
  metadata.sample_cursor = step * 128;
  metadata.seed = 0xffffffffffffffffULL;
  metadata.shards = 8;
  metadata.global_batch = 128;
  metadata.world = 3;
  metadata.optimizer = "sgd momentum=0.9";
  metadata.schedule = "cosine peak=0.05 warmup=100";
  metadata.wire = "bfloat16";
  metadata.top_k = "0";
  metadata.state_digest = "00112233445566778899aabbccddeeff";
  return metadata;
}

inline writer_settings small_settings() {
  writer_settings settings;
  settings.directory = checkpoint_directory;
  settings.layout = small_layout();
  settings.self = test_incarnation;
  settings.retention.keep_last = 100;
  return settings;
}

inline expected<written_version> write_version(storage& files, std::uint64_t step, float seed,
                                               const writer_settings& settings = small_settings()) {
  const auto state = small_state(seed);
  return checkpoint_writer{files, settings}.write(metadata_at(step), std::as_bytes(std::span{state}));
}

// The state of a verified version, or nothing.
inline std::vector<float> load_state(storage& files, const verified_version& version) {
  std::vector<float> state(96, -1.0F);
  const auto loaded = load_version(files, version, small_layout(), std::as_writable_bytes(std::span{state}));
  return loaded ? state : std::vector<float>{};
}

inline void put_text(storage& files, const std::string& path, std::string_view text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span{text.data(), text.size()});
  (void)files.write_file(path, std::span{&piece, 1});
}

inline std::string get_text(storage& files, const std::string& path) {
  const auto bytes = files.read_file(path, 1U << 24).value();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace troupe::test
