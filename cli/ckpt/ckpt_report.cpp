#include "cli/ckpt/ckpt_report.hpp"

#include <algorithm>
#include <ostream>

namespace troupe::ckpt {

using json = nlohmann::json;

std::string finding::status(bool quick) const {
  if (!cause) return quick ? "unverified" : "ok";
  switch (cause->code) {
  case errc::not_found:
    return "incomplete";
  case errc::wrong_version:
    return "newer";
  case errc::corrupt:
    return "corrupt";
  default:
    return "unreadable";
  }
}

finding look_at(storage& files, const version_entry& entry, bool quick) {
  finding found{entry, std::nullopt, std::nullopt};
  auto about = read_manifest(files, entry.path);
  if (!about) {
    found.cause = about.failure();
    return found;
  }
  found.about = std::move(*about);
  if (found.about->metadata.step != entry.step) {
    found.cause = error{errc::corrupt,
                        entry.path + " holds the manifest of step " + to_string(found.about->metadata.step)};
  } else if (!quick) {
    if (auto good = verify_files(files, entry.path, *found.about); !good) found.cause = good.failure();
  }
  return found;
}

expected<std::vector<version_entry>> entries_of(const command_context& context,
                                                std::optional<std::uint64_t> step) {
  const auto& directory = context.options.directory;
  if (auto names = context.files.list(directory); !names) {
    if (names.failure().code == errc::not_found)
      return error{errc::not_found, "no such directory: " + directory};
    return names.failure();
  }
  auto listing = catalog{context.files, directory}.list();
  if (!listing) return listing.failure();
  if (!step) return std::move(listing->versions);
  std::erase_if(listing->versions, [&](const auto& entry) { return entry.step.value() != *step; });
  if (listing->versions.empty())
    return error{errc::not_found, directory + " holds no checkpoint of step " + std::to_string(*step)};
  return std::move(listing->versions);
}

json to_json(const finding& found) {
  json value{{"step", found.entry.step.value()}, {"path", found.entry.path}};
  value["cause"] = found.cause ? json(found.cause->text) : json();
  if (found.about) {
    const auto& m = found.about->metadata;
    value["generation"] = m.generation.value();
    value["files"] = found.about->files.size();
    value["bytes"] = found.about->bytes();
    value["written_unix_s"] = m.written_unix_s;
    value["program"] = found.about->program;
    value["weights_digest"] = m.weights_digest;
    value["state_digest"] = m.state_digest;
  }
  return value;
}

void print_json(const command_context& context, const json& value) {
  context.out << value.dump(2, ' ', false, json::error_handler_t::replace) << "\n";
}

int fail(const command_context& context, const error& cause, int code) {
  context.err << "troupe ckpt: " << cause.text << "\n";
  if (context.options.json)
    print_json(context, {{"error", {{"code", std::string{to_string(cause.code)}}, {"text", cause.text}}}});
  return code;
}

void print_table(std::ostream& out, const std::vector<std::vector<std::string>>& rows,
                 const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (right[i] ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  return text + "]";
}

} // namespace troupe::ckpt

namespace troupe {

int run_ckpt(storage& files, const ckpt_options& options, std::ostream& out, std::ostream& err) {
  const ckpt::command_context context{files, options, out, err};
  switch (options.action) {
  case ckpt_action::ls:
    return ckpt::list_versions(context);
  case ckpt_action::show:
    return ckpt::show_version(context);
  case ckpt_action::verify:
    return ckpt::verify_versions(context);
  case ckpt_action::diff:
    return ckpt::diff_versions(context);
  case ckpt_action::none:
    break;
  }
  return ckpt::fail(context, {errc::bad_argument, "no command; one of ls, show, verify, diff"},
                    ckpt::exit_usage);
}

} // namespace troupe
