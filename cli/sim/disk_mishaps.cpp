// Mishaps of the disk: what a storage may lose or change behind our back, and failures while a version is
// replaced.
#include <algorithm>
#include <csignal>
#include <memory>

#include "cli/sim/mishaps.hpp"
#include "cli/sim/strikes.hpp"
#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/version_name.hpp"

namespace troupe::sim {
namespace {

using said = std::optional<std::string>;

constexpr std::uint64_t failing_changes_max = 6;
constexpr std::uint64_t power_lost_after_max = 8; // changes: also when all of it is done, and not flushed
constexpr duration dark_min = std::chrono::milliseconds{100};
constexpr duration dark_max = std::chrono::seconds{2};

bool cut_in_half(sim_storage& disk, const std::string& path) {
  const auto bytes = disk.read_file(path, ~std::uint64_t{0});
  if (!bytes) return false;
  const std::span<const std::byte> half{bytes->data(), bytes->size() / 2};
  return disk.write_file(path, {&half, 1}).has_value();
}

// The former version has been put aside, the new one has not its name yet.
bool being_replaced(sim_storage& disk) {
  const auto names = disk.list(checkpoint_directory);
  return names && std::ranges::any_of(*names, [](const std::string& name) {
           const auto parsed = parse_version_name(name);
           return parsed && parsed->state == version_state::retired;
         });
}

} // namespace

namespace mishaps {

said damage_version(cluster& in, strikes& by) {
  auto& disk = in.machine().disk;
  const auto listing = catalog{disk, checkpoint_directory}.list();
  if (!listing || listing->versions.empty()) return std::nullopt;
  const auto& newest = listing->versions.back();
  if (newest.step.value() == in.what().steps())
    return "the last checkpoint is left alone"; // none replaces it
  const auto names = disk.list(newest.path);
  if (!names) return std::nullopt;
  const auto shard = std::ranges::find_if(*names, [](const auto& name) { return name != manifest_name; });
  if (shard == names->end()) return std::nullopt;
  const auto path = join_path(newest.path, by.draw(2) == 0 ? std::string{manifest_name} : *shard);
  in.look_at_disk();
  if (by.draw(2) == 0 && cut_in_half(disk, path)) return path + " is cut in half";
  return disk.remove_all(path) ? said{path + " is lost"} : std::nullopt;
}

said damage_journal(cluster& in, strikes& by) {
  auto& disk = in.machine().disk;
  const auto path = join_path(checkpoint_directory, "journal.json");
  if (!disk.read_file(path, ~std::uint64_t{0})) return std::nullopt;
  auto killed = kill_director(in, by);
  if (!killed || !cut_in_half(disk, path)) return std::nullopt;
  in.forget_generations();
  return *killed + ", the journal is cut in half";
}

said tear_replacement(cluster& in, strikes& by) {
  const bool director_too = by.draw(2) == 0;
  in.before_change([&in, &by, director_too](sim_process&) {
    if (!being_replaced(in.machine().disk)) return;
    (void)kill_all(in, by);
    if (director_too) (void)kill_director(in, by);
    in.before_change({});
  });
  return "once a checkpoint is being replaced, all workers" +
         std::string{director_too ? " and the director" : ""} + " are killed";
}

said fail_replacement(cluster& in, strikes& by) {
  auto left = std::make_shared<std::uint64_t>(1 + by.draw(failing_changes_max));
  const auto text = "once a checkpoint is being replaced, " + std::to_string(*left) + " changes fail";
  auto failing = std::make_shared<bool>(false);
  in.before_change([&in, left, failing](sim_process&) {
    auto& disk = in.machine().disk;
    if (!*failing && !being_replaced(disk)) return;
    *failing = true;
    disk.fail_changes(error{errc::storage_failed, "the disk fails"});
    if ((*left)-- != 0) return;
    disk.fail_changes(std::nullopt);
    in.before_change({});
  });
  return text;
}

said lose_replacement(cluster& in, strikes& by) {
  const auto text = "once a checkpoint is being replaced, the host of its writer loses power";
  auto left = std::make_shared<std::uint64_t>(by.draw(power_lost_after_max));
  auto replaced = std::make_shared<bool>(false);
  in.before_change([&in, &by, left, replaced](sim_process& who) {
    *replaced = *replaced || being_replaced(in.machine().disk);
    if (!*replaced || (*left)-- != 0) return;
    in.before_change({});
    in.lose_power(who.host(), by.draw_between(dark_min, dark_max),
                  [&by](std::size_t) { return by.draw(2) == 0; });
  });
  return text;
}

} // namespace mishaps
} // namespace troupe::sim
