// Reading a directory of flight dumps: what can be used, and why the rest cannot.
#include <algorithm>

#include "cli/flight/flight_command.hpp"

namespace troupe {
namespace {

expected<flight_dump> read_one(storage& files, const std::string& path, const flight_file& name) {
  const auto content = files.read_file(path, flight_file_bytes_max);
  if (!content) return content.failure();
  auto dump = parse_flight_dump({reinterpret_cast<const char*>(content->data()), content->size()});
  if (!dump) return dump.failure();
  const auto& about = dump->about;
  if (about.generation == name.generation && about.rank == name.rank) return dump;
  return error{errc::corrupt, "says that it is of rank " + to_string(about.rank) + " of generation " +
                                  to_string(about.generation)};
}

// Dumps of one generation have one world: the one that most of them name.
void keep_one_world(std::vector<flight_dump>& dumps, std::vector<flight_files::note>& notes) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& one : dumps)
    ++counts[one.about.world];
  const auto world = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; })->first;
  std::erase_if(dumps, [&](const flight_dump& one) {
    if (one.about.world == world) return false;
    notes.push_back(
        {flight_file_name(one.about.generation, one.about.rank),
         "is of a world of " + std::to_string(one.about.world) + ", the others of " + std::to_string(world),
         true});
    return true;
  });
}

} // namespace

expected<flight_files> read_flight_files(storage& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return names.failure();
  flight_files out;
  std::size_t looked_at = 0;
  for (const auto& name : *names) {
    const auto which = parse_flight_file_name(name);
    if (!which) {
      out.notes.push_back({name, "no flight dump by its name; left alone"});
      continue;
    }
    if (++looked_at > flight_files_max) {
      out.notes.push_back(
          {name, "not looked at: more than " + std::to_string(flight_files_max) + " dumps", true});
      break;
    }
    auto dump = read_one(files, directory + "/" + name, *which);
    if (!dump) {
      out.notes.push_back({name, dump.failure().text, true});
      continue;
    }
    if (!dump->damage.empty()) out.notes.push_back({name, dump->damage, true});
    out.dumps[which->generation].push_back(std::move(*dump));
  }
  for (auto& [generation, dumps] : out.dumps) {
    keep_one_world(dumps, out.notes);
    std::ranges::sort(dumps, {}, [](const flight_dump& one) { return one.about.rank; });
  }
  return out;
}

} // namespace troupe
