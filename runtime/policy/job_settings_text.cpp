// The text form of job settings: one JSON object, version 1.
#include <limits>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "runtime/base/limits.hpp"
#include "runtime/policy/job_settings.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;

constexpr std::uint64_t form_version = 1;

// One list of fields serves both directions: `io` is a writer or a reader.
template <class Io, class Settings>
void each_field(Io& io, Settings& s) {
  io.field("workers", s.workers);
  io.field("workers_min", s.workers_min);
  io.field("workers_max", s.workers_max);
  io.field("external", s.external);
  io.field("device", s.device);
  io.field("transport", s.transport);
  io.field("collective", s.collective);
  io.field("network", s.network);
  io.field("spin_ns", s.spin);
  io.field("steps", s.steps);
  io.field("epochs", s.epochs);
  io.field("global_batch", s.global_batch);
  io.field("shards", s.shards);
  io.field("accumulate", s.accumulate);
  io.field("seed", s.seed);
  io.field("bucket", s.bucket);
  io.field("wire", s.wire);
  io.field("top_k", s.top_k);
  io.field("checkpoint_dir", s.checkpoint_dir);
  io.field("checkpoint_every", s.checkpoint_every);
  io.field("keep", s.keep);
  io.field("resume", s.resume);
  io.field("detect_after_ns", s.detect_after);
  io.field("faults", s.faults);
  io.field("events", s.events);
  io.field("summary", s.summary);
  io.field("flight", s.flight);
  io.field("metrics", s.metrics);
  io.field("quiet", s.quiet);
  io.field("listen", s.listen);
  io.field("join", s.join);
  io.field("token_file", s.token_file);
  io.field("tls_cert", s.tls_cert);
  io.field("tls_key", s.tls_key);
  io.field("tls_ca", s.tls_ca);
  io.field("extra", s.extra);
}

struct writer {
  json out = json::object();

  template <class T>
  void field(const char* name, const T& value) {
    out[name] = value;
  }
  void field(const char* name, const std::optional<std::uint64_t>& value) {
    if (value) out[name] = *value;
  }
  void field(const char* name, const duration& value) { out[name] = value.count(); }
  void field(const char* name, const resume_choice& value) { out[name] = to_text(value); }
  void field(const char* name, const fault_plan& value) {
    auto& list = out[name] = json::array();
    for (const auto& f : value)
      list.push_back(to_text(f));
  }
};

struct reader {
  const json& in;
  std::string wrong{}; // the first field that does not fit

  void require(bool fits, const char* name) {
    if (!fits && wrong.empty()) wrong = name;
  }
  const json* find(const char* name, bool (json::*is)() const noexcept) {
    const auto at = in.find(name);
    if (at == in.end() || !((*at).*is)()) return require(false, name), nullptr;
    return &*at;
  }
  template <class T>
  requires std::is_unsigned_v<T>
  void field(const char* name, T& value) {
    const auto* at = find(name, &json::is_number_unsigned);
    if (at == nullptr) return;
    const auto number = at->get<std::uint64_t>();
    require(number <= std::numeric_limits<T>::max(), name);
    value = static_cast<T>(number);
  }
  void field(const char* name, double& value) {
    if (const auto* at = find(name, &json::is_number)) value = at->get<double>();
  }
  void field(const char* name, bool& value) {
    if (const auto* at = find(name, &json::is_boolean)) value = at->get<bool>();
  }
  void field(const char* name, std::string& value) {
    if (const auto* at = find(name, &json::is_string)) value = at->get<std::string>();
  }
  void field(const char* name, duration& value) {
    if (const auto* at = find(name, &json::is_number_integer)) value = duration{at->get<std::int64_t>()};
  }
  void field(const char* name, std::optional<std::uint64_t>& value) {
    value.reset();
    if (in.contains(name)) field(name, value.emplace());
  }
  void field(const char* name, resume_choice& value) {
    std::string text;
    field(name, text);
    const auto choice = parse_resume(text);
    require(choice.has_value(), name);
    if (choice) value = *choice;
  }
  void field(const char* name, fault_plan& value) {
    const auto* at = find(name, &json::is_array);
    if (at == nullptr) return;
    value.clear();
    for (const auto& item : *at) {
      const auto f = item.is_string() ? parse_fault(item.get<std::string>()) : error{errc::corrupt, ""};
      require(f.has_value() && value.size() < plan_faults_max, name);
      if (!wrong.empty()) return;
      value.push_back(*f);
    }
  }
  void field(const char* name, std::map<std::string, std::string>& value) {
    const auto* at = find(name, &json::is_object);
    if (at == nullptr) return;
    value.clear();
    for (const auto& [key, item] : at->items()) {
      require(item.is_string(), name);
      if (!wrong.empty()) return;
      value.emplace(key, item.get<std::string>());
    }
  }
};

} // namespace

std::string encode(const job_settings& settings) {
  writer io;
  io.out["form"] = form_version;
  each_field(io, settings);
  return io.out.dump(-1, ' ', false, json::error_handler_t::replace);
}

expected<job_settings> decode_job_settings(std::string_view text) {
  const error unreadable{errc::corrupt, "job settings: not the text that a director sends"};
  if (text.size() > limits::envelope_bytes_max) return unreadable;
  const auto document = json::parse(text, nullptr, false);
  if (!document.is_object()) return unreadable;
  reader io{document};
  std::uint64_t form = 0;
  io.field("form", form);
  if (!io.wrong.empty()) return unreadable;
  if (form != form_version)
    return error{errc::wrong_version, "job settings: form " + std::to_string(form) + "; this build reads " +
                                          std::to_string(form_version)};
  job_settings settings;
  each_field(io, settings);
  if (!io.wrong.empty()) return error{errc::corrupt, "job settings: field '" + io.wrong + "' does not fit"};
  if (const auto valid = settings.validate(); !valid) return valid.failure().at("job settings");
  return settings;
}

} // namespace troupe
