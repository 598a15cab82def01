#include "runtime/checkpoint/checkpoint_writer.hpp"

#include <array>
#include <cstdio>
#include <utility>

#include "runtime/base/digest.hpp"
#include "runtime/base/planted_bug.hpp"
#include "runtime/base/probe.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/shard_file.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe {

// Some consecutive tensors of one segment, in one file.
struct checkpoint_writer::shard_plan {
  std::string name;
  std::size_t segment{0};
  std::size_t first_tensor{0};
  std::size_t tensors{0};
};

namespace {

std::string shard_name(const state_layout& layout, std::size_t segment, std::size_t index,
                       std::size_t count) {
  std::array<char, 64> suffix{};
  std::snprintf(suffix.data(), suffix.size(), "-%05zu-of-%05zu.safetensors", index + 1, count);
  const std::string prefix = segment == 0 ? "" : "optimizer-";
  return prefix + std::string{layout.segment_name(segment)} + suffix.data();
}

// Numbers of tensors a file, such that no file exceeds the limit unless a single tensor does.
std::vector<std::size_t> split(const state_layout& layout, std::uint64_t bytes_max) {
  std::vector<std::size_t> counts;
  std::uint64_t used = 0;
  for (const auto& tensor : layout.tensors) {
    const auto bytes = tensor.elements() * sizeof(float);
    if (counts.empty() || used + bytes > bytes_max) {
      counts.push_back(0);
      used = 0;
    }
    ++counts.back();
    used += bytes;
  }
  return counts;
}

} // namespace

checkpoint_writer::checkpoint_writer(storage& files, writer_settings settings)
    : files_{files}
    , settings_{std::move(settings)} {}

std::vector<checkpoint_writer::shard_plan> checkpoint_writer::plan() const {
  const auto counts = split(settings_.layout, settings_.shard_bytes_max);
  std::vector<shard_plan> shards;
  for (std::size_t segment = 0; segment < settings_.layout.segments(); ++segment) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      shards.push_back({shard_name(settings_.layout, segment, i, counts.size()), segment, first, counts[i]});
      first += counts[i];
    }
  }
  return shards;
}

expected<manifest_file> checkpoint_writer::write_shard(const std::string& directory, const shard_plan& shard,
                                                       step_id step, std::span<const std::byte> state) {
  const auto& layout = settings_.layout;
  std::vector<shard_tensor> tensors;
  std::vector<std::span<const std::byte>> pieces{{}};
  for (std::size_t i = 0; i < shard.tensors; ++i) {
    const auto& spec = layout.tensors[shard.first_tensor + i];
    tensors.push_back({spec.name, spec.shape, 0, 0});
    pieces.push_back(tensor_bytes(layout, state, shard.segment, shard.first_tensor + i));
  }
  const std::string segment{layout.segment_name(shard.segment)};
  const auto header = encode_shard_header(
      tensors, {{"program", layout.program}, {"segment", segment}, {"step", to_string(step)}});
  pieces.front() = header;

  manifest_file file{shard.name, segment, 0, {}};
  digest_builder digest;
  for (const auto& piece : pieces) {
    file.bytes += piece.size();
    digest.add(piece);
  }
  file.digest = digest.finish();
  const auto path = join_path(directory, shard.name);
  if (auto written = files_.write_file(path, pieces); !written) return written.failure();
  if (settings_.read_back) {
    if (auto same = verify_file(files_, path, file.bytes, file.digest); !same)
      return same.failure().at("read back");
  }
  return file;
}

expected<std::uint64_t> checkpoint_writer::write_manifest(const std::string& partial,
                                                          const manifest& version) {
  const auto text = encode_manifest(version);
  const auto bytes = std::as_bytes(std::span{text});
  // What this build could not read back shall not be written.
  if (auto readable = parse_manifest(bytes, "manifest"); !readable)
    return error{errc::bad_argument, readable.failure().text};
  const auto path = join_path(partial, manifest_name);
  const std::array pieces{bytes};
  if (auto done = files_.write_file(path + ".tmp", pieces); !done) return done.failure();
  if (auto done = files_.rename(path + ".tmp", path); !done) return done.failure();
  return bytes.size();
}

expected<checkpoint_writer::staged_version> checkpoint_writer::stage(const std::string& partial,
                                                                     const checkpoint_metadata& metadata,
                                                                     std::span<const std::byte> state) {
  if (auto done = files_.remove_all(partial); !done) return done.failure();
  if (auto done = files_.create_directories(partial); !done) return done.failure();
  manifest version{manifest_schema, settings_.layout.program, settings_.layout.fingerprint(), metadata, {}};
  if (version.metadata.weights_digest.empty())
    version.metadata.weights_digest = weights_digest_of(settings_.layout, state);
  for (const auto& shard : plan()) {
    auto file = write_shard(partial, shard, metadata.step, state);
    if (!file) return file.failure();
    version.files.push_back(std::move(*file));
  }
  const auto manifest_bytes = write_manifest(partial, version);
  if (!manifest_bytes) return manifest_bytes.failure();
  if (auto done = files_.sync_directory(partial); !done) return done.failure();
  return staged_version{version.files.size(), version.bytes() + *manifest_bytes};
}

// From here on the version is whole; what remains is to give it its name.
expected<void> checkpoint_writer::publish(const std::string& partial, step_id step) {
  const auto final_path = join_path(settings_.directory, whole_name(step));
  const auto retired =
      join_path(settings_.directory, marked_name(version_state::retired, step, settings_.self));
  const auto former = files_.list(final_path);
  if (!former && former.failure().code != errc::not_found) return former.failure();
  if (former) {
    probe<"checkpoint.version_replaced">::hit();
    // The catalog finds a retired version as long as its step has no other: there is no moment without one.
    if (auto done = discard(retired, step); !done) return done; // of an earlier try
    if (auto done = files_.rename(final_path, retired); !done) return done;
  }
  if (auto done = files_.rename(partial, final_path); !done) {
    if (probe<"checkpoint.version_put_back">::when(former.has_value()))
      (void)files_.rename(retired, final_path);
    return done;
  }
  if (!TROUPE_PLANTED("checkpoint.rename_not_synced")) {
    if (auto done = files_.sync_directory(settings_.directory); !done) return done;
  }
  if (former) (void)discard(retired, step); // what stays is cleaned at the next start
  return {};
}

// A retired version may stand in for its step, and outlive the one that replaced it: it has that name only
// while all of it is there, also where a crash brings names back.
expected<void> checkpoint_writer::discard(const std::string& retired, step_id step) {
  const auto there = files_.list(retired);
  if (!there) return there.failure().code == errc::not_found ? expected<void>{} : there.failure();
  const auto removed =
      join_path(settings_.directory, marked_name(version_state::removed, step, settings_.self));
  if (auto done = files_.remove_all(removed); !done) return done;
  if (auto done = files_.rename(retired, removed); !done) return done;
  if (auto done = files_.sync_directory(settings_.directory); !done) return done;
  return files_.remove_all(removed);
}

expected<written_version> checkpoint_writer::write(const checkpoint_metadata& metadata,
                                                   std::span<const std::byte> state) {
  const auto hop = "checkpoint of step " + to_string(metadata.step);
  if (auto valid = validate(settings_.layout); !valid) return valid.failure().at(hop);
  if (state.size() < settings_.layout.state_bytes())
    return error{errc::bad_argument, "the snapshot is smaller than the state"}.at(hop);
  const auto partial =
      join_path(settings_.directory, marked_name(version_state::partial, metadata.step, settings_.self));
  if (TROUPE_PLANTED("checkpoint.published_before_whole"))
    (void)stage(join_path(settings_.directory, whole_name(metadata.step)), metadata, state);

  const auto staged = stage(partial, metadata, state);
  auto published = staged ? publish(partial, metadata.step) : expected<void>{staged.failure()};
  if (!published) {
    probe<"checkpoint.not_written">::hit();
    (void)files_.remove_all(partial); // the first failure is the one to report
    return published.failure().at(hop);
  }
  written_version written{metadata.step,
                          join_path(settings_.directory, whole_name(metadata.step)),
                          staged->bytes,
                          staged->files,
                          {},
                          std::nullopt};
  auto removed =
      apply_retention(files_, settings_.directory, settings_.retention, metadata.step, settings_.self);
  if (removed) {
    written.removed = std::move(*removed);
  } else {
    probe<"checkpoint.retention_failed">::hit();
    written.retention_failure = removed.failure().at("retention");
  }
  return written;
}

void write_async(executor& storage_thread, executor& reply_on, std::shared_ptr<checkpoint_writer> writer,
                 snapshot what, write_done done) {
  struct job {
    std::shared_ptr<checkpoint_writer> writer;
    snapshot what;
    write_done done;
    std::optional<expected<written_version>> result;
  };
  auto shared = std::make_shared<job>(job{std::move(writer), std::move(what), std::move(done), std::nullopt});
  storage_thread.post([shared = std::move(shared), &reply_on]() mutable {
    shared->result.emplace(shared->writer->write(shared->what.metadata, shared->what.state.bytes()));
    shared->what.state.release();
    // Moved on, so that `done` and what it holds are destroyed where it runs.
    reply_on.post([shared = std::move(shared)] { shared->done(std::move(*shared->result)); });
  });
}

} // namespace troupe
