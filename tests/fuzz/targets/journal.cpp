// Journal of a director: a file that anything may have happened to.
#include "actors/director/journal.hpp"

#include "tests/fuzz/one_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  one_file file{given};
  const auto read = read_journal(file, "ck");
  if (!read) {
    require(read.failure().code == errc::corrupt || read.failure().code == errc::wrong_version,
            "what is no journal is corrupt, or of a newer schema");
    return;
  }
  require(write_journal(file, "ck", *read).has_value(), "what was read is written");
  const auto again = read_journal(file, "ck");
  require(again && again->job == read->job && again->generation == read->generation &&
              again->faults == read->faults && again->fired == read->fired,
          "a journal that was read is written and read alike");
}

std::vector<bytes> seeds() {
  std::vector<bytes> made;
  for (const auto& entry :
       {journal_entry{job_id{1, 2}, generation_id{3}, {}, {}},
        journal_entry{job_id{1, UINT64_MAX}, generation_id{9}, {"kill:worker=1@step=40"}, "0/1/1"}}) {
    one_file file{{}};
    (void)write_journal(file, "ck", entry);
    made.push_back(file.content());
  }
  return made;
}

} // namespace

const target journal_target{"journal", run, seeds, 4000};

} // namespace troupe::fuzz
