#include <array>
#include <sstream>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "cli/flight/flight_command.hpp"
#include "runtime/seams/process.hpp"
#include "runtime/sim/sim_storage.hpp"

namespace troupe {
namespace {

// A rank that made `sums` sums, of which it waits in the last.
flight_dump dump_of(std::uint32_t rank, std::uint64_t sums, std::uint32_t world = 3,
                    std::uint64_t generation = 1) {
  const auto box = std::make_unique<black_box>();
  for (std::uint64_t i = 1; i <= sums; ++i) {
    flight_record made{.generation = generation, .sequence = i, .step = i, .elements = 10, .created_ns = 1};
    made.outcome = i < sums ? call_outcome::done : call_outcome::pending;
    made.finished_ns = i < sums ? 2 : 0;
    box->flight.add(made);
  }
  return make_flight_dump({.generation = generation_id{generation},
                           .rank = rank_id{rank},
                           .world = world,
                           .cause = "rank lost",
                           .now = time_from_ns(5'000'000'000)},
                          box->flight);
}

class directory {
public:
  void put(const flight_dump& dump) { REQUIRE(write_flight_dump(files, "d", dump)); }
  void put(const std::string& name, const std::string& text) {
    const std::array pieces{std::as_bytes(std::span{text})};
    REQUIRE(files.create_directories("d"));
    REQUIRE(files.write_file("d/" + name, pieces));
  }
  int look(bool json = false, const std::string& where = "d") {
    std::ostringstream to_out, to_err;
    const int code = run_flight(files, {where, json}, to_out, to_err);
    out = to_out.str(), err = to_err.str();
    return code;
  }
  sim_storage files;
  std::string out, err;
};

TEST_CASE("troupe flight: one line a generation, exit code 1 where ranks do not agree") {
  directory d;
  for (std::uint32_t rank = 0; rank < 3; ++rank)
    d.put(dump_of(rank, 7, 3, 1));
  CHECK(d.look() == 0);
  CHECK(d.out == "generation 1: all 3 ranks agree\n");
  CHECK(d.err.empty());
  d.put(dump_of(0, 8, 3, 2));
  d.put(dump_of(1, 8, 3, 2));
  d.put(dump_of(2, 7, 3, 2));
  CHECK(d.look() == 1);
  CHECK(d.out ==
        "generation 1: all 3 ranks agree\n"
        "generation 2: rank 2 did not enter sum #8 of step 8 (sum of 10 float32); rank 0 waited in it for "
        "4.999s; its last was sum #7 of step 7, pending\n");
  CHECK(d.look(true) == 1);
  const auto report = nlohmann::json::parse(d.out);
  CHECK(report["exit_code"] == 1);
  CHECK(report["generations"][1]["ranks_named"] == nlohmann::json::array({2}));
  CHECK(report["generations"][1]["verdict"] == "missing");
  CHECK(report["generations"][1]["dumps"].size() == 3);
}

TEST_CASE("troupe flight: each file that cannot be used is one line; agreement needs all to be whole") {
  directory d;
  d.put(dump_of(0, 7));
  d.put(dump_of(1, 7));
  const auto text = to_text(dump_of(2, 7));
  d.put("flight-1-2.jsonl", text.substr(0, text.size() - 40));
  d.put("flight-1-7.jsonl", to_text(dump_of(0, 7)));
  d.put("flight-2-0.jsonl", std::string{"\0\xff\n{", 4});
  d.put("notes.txt", "mine");
  CHECK(d.look() == 5);
  CHECK(d.out == "generation 1: all 3 ranks agree\n");
  CHECK(d.err == "troupe: flight: flight-1-2.jsonl: cut off: 6 of 7 records\n"
                 "troupe: flight: flight-1-7.jsonl: says that it is of rank 0 of generation 1\n"
                 "troupe: flight: flight-2-0.jsonl: no flight dump\n"
                 "troupe: flight: notes.txt: no flight dump by its name; left alone\n");
  d.put("flight-1-2.jsonl", to_text(dump_of(2, 7, 5))); // of another world: not rank 2 of this one
  CHECK(d.look() == 1);
  CHECK(d.out == "generation 1: rank 2 left no dump; rank 0 waited in sum #7 of step 7 for 4.999s\n");
  CHECK(d.err.find("flight-1-2.jsonl: is of a world of 5, the others of 3\n") != std::string::npos);
}

TEST_CASE("troupe flight: no directory, no dumps, nothing that can be read") {
  directory d;
  CHECK(d.look(false, "nowhere") == 2);
  CHECK(d.err.starts_with("troupe: flight: "));
  d.put("notes.txt", "mine");
  CHECK(d.look() == 2);
  CHECK(d.err.ends_with("troupe: flight: d holds no flight dumps\n"));
  d.put("flight-1-0.jsonl", "");
  CHECK(d.look(true) == 5);
  CHECK(nlohmann::json::parse(d.out)["error"] == "d: no dump can be read");
}

} // namespace
} // namespace troupe
