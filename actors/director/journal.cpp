#include "actors/director/journal.hpp"

#include <nlohmann/json.hpp>

#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t journal_bytes_max = 1 << 20;

std::string path_in(const std::string& directory) {
  return directory + "/journal.json";
}

// The library would convert a number of any kind, a fraction or 1e300 too.
std::uint64_t whole(const nlohmann::json& value) {
  if (!value.is_number_unsigned())
    throw nlohmann::json::other_error::create(501, "a number that is not whole, or negative", &value);
  return value.get<std::uint64_t>();
}

} // namespace

expected<void> write_journal(storage& files, const std::string& directory, const journal_entry& entry) {
  const nlohmann::json text{{"schema", 1},
                            {"job", {entry.job.high(), entry.job.low()}},
                            {"generation", entry.generation.value()},
                            {"faults", entry.faults},
                            {"fired", entry.fired}};
  const auto body = text.dump();
  const auto temporary = path_in(directory) + ".partial";
  const std::span<const std::byte> piece = std::as_bytes(std::span{body});
  if (auto written = files.write_file(temporary, {&piece, 1}); !written) {
    probe<"journal.not_written">::hit();
    return written.failure();
  }
  if (auto renamed = files.rename(temporary, path_in(directory)); !renamed) return renamed;
  return files.sync_directory(directory); // a generation that has started is never forgotten, power or not
}

expected<journal_entry> read_journal(storage& files, const std::string& directory) {
  auto bytes = files.read_file(path_in(directory), journal_bytes_max);
  if (!bytes) return bytes.failure();
  const auto* begin = reinterpret_cast<const char*>(bytes->data());
  try {
    const auto text = nlohmann::json::parse(begin, begin + bytes->size());
    if (whole(text.at("schema")) != 1)
      return error{errc::wrong_version, path_in(directory) + ": a newer schema"};
    return journal_entry{job_id{whole(text.at("job").at(0)), whole(text.at("job").at(1))},
                         generation_id{whole(text.at("generation"))}, text.at("faults"), text.at("fired")};
  } catch (const nlohmann::json::exception& problem) {
    probe<"journal.unreadable">::hit();
    return error{errc::corrupt, path_in(directory) + ": " + problem.what()};
  }
}

expected<void> remove_journal(storage& files, const std::string& directory) {
  if (auto removed = files.remove_all(path_in(directory) + ".partial"); !removed) return removed;
  return files.remove_all(path_in(directory));
}

} // namespace troupe
