// `ckpt show`.
#include <ostream>

#include "cli/ckpt/ckpt_report.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"

namespace troupe::ckpt {
namespace {

using json = nlohmann::json;

json describe(const finding& found, const std::vector<stored_tensor>& tensors, bool indexed) {
  const auto& about = *found.about;
  const auto& m = about.metadata;
  auto value = to_json(found);
  value["status"] = found.status();
  value["schema"] = about.schema;
  value["layout"] = about.layout;
  value["job"] = to_string(m.job);
  value["sample_cursor"] = m.sample_cursor;
  value["seed"] = m.seed;
  value["shards"] = m.shards;
  value["global_batch"] = m.global_batch;
  value["world"] = m.world;
  value["optimizer"] = m.optimizer;
  value["schedule"] = m.schedule;
  value["wire"] = m.wire;
  value["top_k"] = m.top_k;
  value["files"] = json::array();
  for (const auto& file : about.files)
    value["files"].push_back(
        {{"name", file.name}, {"segment", file.segment}, {"bytes", file.bytes}, {"digest", file.digest}});
  value["tensors"] = indexed ? json::array() : json();
  for (const auto& tensor : tensors)
    value["tensors"].push_back({{"segment", tensor.segment}, {"name", tensor.name}, {"shape", tensor.shape}});
  return value;
}

void print_text(const command_context& context, const finding& found,
                const std::vector<stored_tensor>& tensors) {
  const auto& about = *found.about;
  const auto& m = about.metadata;
  auto& out = context.out;
  print_table(out,
              {{"path", found.entry.path},
               {"status", found.status() + (found.cause ? " (" + found.cause->text + ")" : "")},
               {"program", about.program + " (layout " + about.layout + ")"},
               {"job", to_string(m.job)},
               {"step", to_string(m.step)},
               {"generation", to_string(m.generation)},
               {"samples", std::to_string(m.sample_cursor)},
               {"seed", std::to_string(m.seed)},
               {"batch", std::to_string(m.global_batch) + " in " + std::to_string(m.shards) + " shards"},
               {"workers", std::to_string(m.world)},
               {"optimizer", m.optimizer},
               {"schedule", m.schedule},
               {"wire", m.wire.empty() ? "not said" : m.wire + (m.top_k == "0" ? "" : ", top-k " + m.top_k)},
               {"weights", m.weights_digest},
               {"state", m.state_digest}},
              {false, false});
  out << "\n";
  std::vector<std::vector<std::string>> files{{"FILE", "BYTES", "DIGEST"}};
  for (const auto& file : about.files)
    files.push_back({file.name, std::to_string(file.bytes), file.digest});
  print_table(out, files, {false, true, false});
  if (tensors.empty()) return;
  out << "\n";
  std::vector<std::vector<std::string>> rows{{"TENSOR", "SHAPE", "BYTES"}};
  for (const auto& tensor : tensors)
    rows.push_back(
        {tensor.segment + "/" + tensor.name, shape_text(tensor.shape), std::to_string(tensor.bytes)});
  print_table(out, rows, {false, false, true});
}

} // namespace

int show_version(const command_context& context) {
  const auto entries = entries_of(context, context.options.step);
  if (!entries) return fail(context, entries.failure(), exit_usage);
  if (entries->empty())
    return fail(context, {errc::not_found, context.options.directory + " holds no checkpoints"}, exit_usage);
  const auto found = look_at(context.files, entries->back(), false);
  if (!found.about) return fail(context, *found.cause, exit_bad);
  const auto tensors = index_version(context.files, found.entry.path, *found.about);
  const auto listed = tensors ? *tensors : std::vector<stored_tensor>{};
  if (context.options.json) {
    print_json(context, describe(found, listed, static_cast<bool>(tensors)));
  } else {
    print_text(context, found, listed);
  }
  return found.good() ? exit_good : exit_bad;
}

} // namespace troupe::ckpt
