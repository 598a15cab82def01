#include "actors/director/resume_search.hpp"

#include "runtime/base/probe.hpp"

namespace troupe {
namespace {

// The same bits need the same settings: another seed, batch or sharding is another training.
expected<void> check_settings(const verified_version& version, const resume_search& what) {
  const auto says_other = [&](const std::string& option, const std::string& there, const std::string& here) {
    return error{errc::bad_argument, "--checkpoint-dir " + what.directory + ": step " +
                                         to_string(version.step) + " was written with " + option + " " +
                                         there + ", this run says " + here + "; accepted: the same " +
                                         option + ", another directory, or --resume none"};
  };
  const auto differs = [&](const char* option, std::uint64_t there, std::uint64_t here) {
    return says_other(option, std::to_string(there), std::to_string(here));
  };
  const auto& metadata = version.manifest.metadata;
  if (what.steps != 0 && version.step.value() > what.steps) {
    return error{errc::bad_argument, "--steps " + std::to_string(what.steps) + ": " + what.directory +
                                         " holds step " + to_string(version.step) +
                                         " already; accepted: at least that many, another directory, or "
                                         "--resume none"};
  }
  if (metadata.seed != what.seed) return differs("--seed", metadata.seed, what.seed);
  if (metadata.shards != what.shards) return differs("--shards", metadata.shards, what.shards);
  if (metadata.global_batch != what.global_batch) {
    return differs("--global-batch", metadata.global_batch, what.global_batch);
  }
  if (!metadata.wire.empty() && metadata.wire != what.wire)
    return says_other("--wire", metadata.wire, what.wire);
  if (!metadata.top_k.empty() && metadata.top_k != what.top_k)
    return says_other("--top-k", metadata.top_k, what.top_k);
  return {};
}

// The step that was asked for is not there, or not whole.
error not_resumable(const catalog& versions, const resume_search& what, const error& cause) {
  std::string there;
  if (auto listing = versions.list()) {
    for (const auto& one : listing->versions)
      if (one.step != what.choice.step) there += to_string(one.step) + ", ";
  }
  return {cause.code, "--resume " + to_string(what.choice.step) + ": " + cause.text + "; accepted: " + there +
                          "auto, none"};
}

expected<resume_found> newest(const catalog& versions, const resume_search& what) {
  auto search = versions.newest_verified(what.layout);
  if (!search) return search.failure();
  if (search->refused)
    return error{search->refused->code, "--checkpoint-dir " + what.directory + ": " + search->refused->text +
                                            "; accepted: another directory, or --resume none"};
  resume_found out{{}, std::move(search->rejected)};
  if (!search->found) {
    probe<"resume.nothing_verified">::when(!out.rejected.empty());
    return out;
  }
  if (auto same = check_settings(*search->found, what); !same) return same.failure();
  out.from = {search->found->step, search->found->path};
  return out;
}

} // namespace

expected<resume_found> find_resume_point(storage& files, const resume_search& what) {
  if (what.directory.empty()) return resume_found{};
  const catalog versions{files, what.directory};
  if (!what.first) return newest(versions, what);
  if (auto cleaned = versions.clean_unfinished(); !cleaned) return cleaned.failure();
  switch (what.choice.what) {
  case resume_choice::kind::newest_verified:
    return newest(versions, what);
  case resume_choice::kind::nothing: {
    auto aside = versions.abandon_after(step_id{0}, what.self);
    if (!aside) return aside.failure();
    return resume_found{};
  }
  case resume_choice::kind::version: {
    auto wanted = versions.version_at(what.choice.step, what.layout);
    if (!wanted) return not_resumable(versions, what, wanted.failure());
    if (auto same = check_settings(*wanted, what); !same) return same.failure();
    auto aside = versions.abandon_after(what.choice.step, what.self);
    if (!aside) return aside.failure();
    return resume_found{{wanted->step, wanted->path}, {}};
  }
  }
  return resume_found{};
}

} // namespace troupe
