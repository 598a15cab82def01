// `ckpt ls` and `ckpt verify`.
#include <ostream>

#include "cli/ckpt/ckpt_report.hpp"

namespace troupe::ckpt {
namespace {

using json = nlohmann::json;

std::string age_text(const command_context& context, const finding& found) {
  const auto now = context.options.now_unix_s;
  const auto written = found.about ? found.about->metadata.written_unix_s : 0;
  if (now == 0 || written == 0 || written > now) return "-";
  const auto age = now - written;
  if (age < 120) return std::to_string(age) + "s";
  if (age < 120 * 60) return std::to_string(age / 60) + "min";
  if (age < std::uint64_t{48} * 3600) return std::to_string(age / 3600) + "h";
  return std::to_string(age / 86400) + "d";
}

std::vector<std::string> table_row(const command_context& context, const finding& found) {
  const auto status =
      found.status(context.options.quick) + (found.cause ? " (" + found.cause->text + ")" : "");
  const auto step = to_string(found.entry.step);
  if (!found.about) return {step, "-", "-", "-", "-", status};
  return {step,
          to_string(found.about->metadata.generation),
          std::to_string(found.about->files.size()),
          std::to_string(found.about->bytes()),
          age_text(context, found),
          status};
}

} // namespace

int list_versions(const command_context& context) {
  const auto entries = entries_of(context, std::nullopt);
  if (!entries) return fail(context, entries.failure(), exit_usage);
  const auto listing = catalog{context.files, context.options.directory}.list();
  if (!listing) return fail(context, listing.failure(), exit_usage);

  std::vector<std::vector<std::string>> rows{{"STEP", "GENERATION", "FILES", "BYTES", "AGE", "STATUS"}};
  json versions = json::array();
  for (const auto& entry : *entries) {
    const auto found = look_at(context.files, entry, context.options.quick);
    rows.push_back(table_row(context, found));
    versions.push_back(to_json(found));
    versions.back()["status"] = found.status(context.options.quick);
  }
  if (context.options.json) {
    print_json(context, {{"directory", context.options.directory},
                         {"versions", versions},
                         {"unfinished", listing->unfinished},
                         {"abandoned", listing->abandoned}});
    return exit_good;
  }
  if (entries->empty()) {
    context.out << "no checkpoints\n";
  } else {
    print_table(context.out, rows, {true, true, true, true, true, false});
  }
  for (const auto& path : listing->unfinished)
    context.out << "unfinished: " << path << "\n";
  for (const auto& path : listing->abandoned)
    context.out << "abandoned: " << path << "\n";
  return exit_good;
}

int verify_versions(const command_context& context) {
  const auto entries = entries_of(context, context.options.step);
  if (!entries) return fail(context, entries.failure(), exit_usage);
  std::size_t bad = 0;
  json versions = json::array();
  for (const auto& entry : *entries) {
    const auto found = look_at(context.files, entry, false);
    if (!found.good()) ++bad;
    versions.push_back(to_json(found));
    versions.back()["status"] = found.status();
    if (context.options.json) continue;
    context.out << found.status() << "  step " << to_string(entry.step) << "  "
                << (found.good() ? entry.path : found.cause->text) << "\n";
  }
  if (context.options.json) {
    print_json(context, {{"directory", context.options.directory}, {"versions", versions}, {"bad", bad}});
  } else if (entries->empty()) {
    context.out << "no checkpoints\n";
  }
  return bad == 0 ? exit_good : exit_bad;
}

} // namespace troupe::ckpt
