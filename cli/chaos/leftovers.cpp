#include "cli/chaos/leftovers.hpp"

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "runtime/checkpoint/version_name.hpp"

namespace troupe::chaos {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator entry{folder, failed}, end; !failed && entry != end; entry.increment(failed))
    names.insert(entry->path().filename().string());
  return names;
}

// Id -> process id of the creator. Columns: key shmid perms size cpid ...
std::map<std::int64_t, std::int64_t> segments_now() {
  std::map<std::int64_t, std::int64_t> found;
  std::ifstream file{"/proc/sysvipc/shm"};
  std::string line;
  std::getline(file, line); // the heading
  while (std::getline(file, line)) {
    std::istringstream columns{line};
    std::int64_t key = 0;
    std::int64_t id = 0;
    std::int64_t creator = 0;
    std::string skipped;
    if (columns >> key >> id >> skipped >> skipped >> creator) found[id] = creator;
  }
  return found;
}

bool is_mapped(const std::string& path) {
  for (const auto& process : names_in("/proc")) {
    std::ifstream maps{fs::path{"/proc"} / process / "maps"};
    const std::string text{std::istreambuf_iterator<char>{maps}, {}};
    if (text.find(path) != std::string::npos) return true;
  }
  return false;
}

} // namespace

machine_state machine_now() {
  machine_state now{.shared_memory = names_in("/dev/shm")};
  for (const auto& [id, creator] : segments_now())
    now.segments.insert(id);
  return now;
}

std::vector<std::string> machine_leftovers(const machine_state& before,
                                           const std::function<bool(std::int64_t pid)>& of_the_run) {
  std::vector<std::string> left;
  for (const auto& name : names_in("/dev/shm")) {
    const auto path = "/dev/shm/" + name;
    if (!before.shared_memory.contains(name) && !is_mapped(path)) left.push_back("shared memory " + path);
  }
  for (const auto& [id, creator] : segments_now()) {
    if (!before.segments.contains(id) && of_the_run(creator))
      left.push_back("System V segment " + std::to_string(id) + " of process " + std::to_string(creator));
  }
  return left;
}

std::vector<std::string> files_in(const fs::path& folder, const std::string& what) {
  std::vector<std::string> left;
  for (const auto& name : names_in(folder))
    left.push_back(what + " " + (folder / name).string());
  return left;
}

std::vector<std::string> unfinished_in(const fs::path& checkpoints) {
  std::vector<std::string> left;
  for (const auto& name : names_in(checkpoints)) {
    const auto version = parse_version_name(name);
    if (!version || version->state != version_state::whole)
      left.push_back("unfinished checkpoint " + (checkpoints / name).string());
  }
  return left;
}

} // namespace troupe::chaos
