#include "actors/director/journal.hpp"

#include <nlohmann/json.hpp>

namespace troupe {
namespace {

constexpr std::uint64_t journal_bytes_max = 1 << 20;

std::string path_in(const std::string& directory) {
  return directory + "/journal.json";
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
  if (auto written = files.write_file(temporary, {&piece, 1}); !written) return written.failure();
  if (auto renamed = files.rename(temporary, path_in(directory)); !renamed) return renamed;
  return files.sync_directory(directory); // a generation that has started is never forgotten, power or not
}

expected<journal_entry> read_journal(storage& files, const std::string& directory) {
  auto bytes = files.read_file(path_in(directory), journal_bytes_max);
  if (!bytes) return bytes.failure();
  const auto* begin = reinterpret_cast<const char*>(bytes->data());
  try {
    const auto text = nlohmann::json::parse(begin, begin + bytes->size());
    if (text.at("schema") != 1) return error{errc::wrong_version, path_in(directory) + ": a newer schema"};
    return journal_entry{job_id{text.at("job").at(0), text.at("job").at(1)},
                         generation_id{text.at("generation")}, text.at("faults"), text.at("fired")};
  } catch (const nlohmann::json::exception& problem) {
    return error{errc::corrupt, path_in(directory) + ": " + problem.what()};
  }
}

expected<void> remove_journal(storage& files, const std::string& directory) {
  if (auto removed = files.remove_all(path_in(directory) + ".partial"); !removed) return removed;
  return files.remove_all(path_in(directory));
}

} // namespace troupe
