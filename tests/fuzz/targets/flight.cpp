// Flight dumps: what any rank, or anybody else, left in a directory. Several at once, with a zero byte
// between them, are compared.
#include <algorithm>
#include <memory>

#include "runtime/seams/process.hpp"
#include "runtime/telemetry/flight_compare.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

void run(input given) {
  std::vector<flight_dump> dumps;
  auto text = text_of(given);
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('\0', begin), text.size());
    auto read = parse_flight_dump(std::string_view{text}.substr(begin, end - begin));
    begin = end + 1;
    if (!read) continue;
    require(read->about.rank.value() < read->about.world, "a rank is within its world");
    require(read->records.size() <= flight_records_max, "records are bounded");
    const auto again = parse_flight_dump(to_text(*read));
    require(again && to_text(*again) == to_text(*read), "a dump that was read is written and read alike");
    const bool fits = dumps.empty() || (read->about.world == dumps.front().about.world &&
                                        read->about.rank > dumps.back().about.rank);
    if (fits) dumps.push_back(std::move(*read));
  }
  if (dumps.empty()) return;
  const auto finding = compare_flights(dumps);
  require(!finding.text.empty() && finding.text.find('\n') == std::string::npos, "a finding is one line");
  require((finding.what == flight_verdict::agree) == finding.ranks.empty(), "who differs is named");
}

flight_dump small(std::uint32_t rank, std::uint64_t sums, bool group) {
  const auto box = std::make_unique<black_box>();
  for (std::uint64_t i = 1; i <= sums; ++i) {
    flight_record made{.generation = 2, .sequence = i, .step = i, .elements = 77, .created_ns = 5};
    if (i < sums) made.outcome = call_outcome::done, made.finished_ns = 9;
    box->flight.add(made);
  }
  flight_record call{.generation = 2, .sequence = 1, .group = 1, .call = collective_call::send, .unused = 0};
  if (group) box->flight.add(call);
  return make_flight_dump({.generation = generation_id{2},
                           .rank = rank_id{rank},
                           .world = 3,
                           .by = rank == 1 ? flight_writer::director : flight_writer::worker,
                           .cause = "killed by SIGKILL",
                           .arrivals = {3, 3, 2},
                           .groups = {{1, {0, 1, 2}}}},
                          box->flight);
}

std::vector<bytes> seeds() {
  const auto joined = [](std::initializer_list<flight_dump> dumps) {
    std::string text;
    for (const auto& one : dumps)
      text += (text.empty() ? std::string{} : std::string(1, '\0')) + to_text(one);
    return bytes_of(text);
  };
  return {joined({small(0, 3, true)}), joined({small(0, 3, false), small(1, 2, false), small(2, 3, true)}),
          joined({small(0, 2, true), small(1, 2, true)}), bytes_of("{\"flight\":1}\n")};
}

} // namespace

const target flight_target{"flight", run, seeds, 3000};

} // namespace troupe::fuzz
