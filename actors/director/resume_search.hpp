// Resume search: from which version the job goes on. Blocks on storage.
//
// Runs on:  the storage executor.
// Fails:    wrong_program, wrong_version (refused outright), bad_argument (written under other settings),
//           not_found (a version was demanded and is not there, or does not verify).
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/checkpoint/layout.hpp"
#include "runtime/policy/job_settings.hpp"
#include "runtime/policy/membership.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct resume_search {
  std::string directory; // empty: no checkpoints
  state_layout layout;
  resume_choice choice;
  std::uint64_t seed{0};
  std::uint32_t shards{0};
  std::uint32_t global_batch{0};
  std::string wire;       // as --wire
  std::string top_k;      // as --top-k: format_number
  std::uint64_t steps{0}; // the job's last; 0: not known
  incarnation_id self;
  bool first{true}; // of this program's run: later searches take the newest, the choice has been honoured
};

struct resume_found {
  resume_point from;
  std::vector<version_rejection> rejected;
};

[[nodiscard]] expected<resume_found> find_resume_point(storage& files, const resume_search& what);

} // namespace troupe
