#include <cstring>

#include <catch2/catch_test_macros.hpp>

#include "runtime/sim/sim_storage.hpp"
#include "tests/unit/telemetry/flight_fixture.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

flight_dump usual(std::uint64_t calls, std::uint64_t generation = 3) {
  manual_clock clock;
  flight::rank one{clock, 1, 2, 4096, generation};
  for (std::uint64_t i = 1; i <= calls; ++i) {
    one.enter(i);
    clock.advance(5ms);
    if (i < calls) one.end(i);
  }
  auto dump = flight::dump_of(one, 1, 2, clock, flight_writer::worker, "rank 0: \"killed\"\n", generation);
  dump.about.arrivals = {5, 6};
  return dump;
}

TEST_CASE("flight dump: what is written is read alike") {
  const auto dump = usual(40);
  const auto text = to_text(dump);
  const auto read = parse_flight_dump(text);
  REQUIRE(read);
  CHECK(read->damage.empty());
  CHECK(to_text(*read) == text);
  CHECK(read->about.cause == "rank 0: \"killed\" ");
  CHECK(read->about.arrivals == dump.about.arrivals);
  CHECK(read->about.groups == dump.about.groups);
  REQUIRE(read->records.size() == 40);
  CHECK(std::memcmp(&read->records[7], &dump.records[7], sizeof(flight_record)) == 0);
}

TEST_CASE("flight dump: only calls of its generation; what the ring has lost of it is known") {
  const auto box = std::make_unique<black_box>();
  manual_clock clock;
  flight_recorder recorder{box->flight, box->step_started, clock};
  const auto run = [&](std::uint64_t generation, int calls) {
    auto inner = std::make_unique<flight::told_communicator>(nullptr);
    auto& told = *inner;
    const auto reduce = recorder.watch(std::move(inner), {generation_id{generation}, 1, 1, 1});
    for (int i = 1; i <= calls; ++i) {
      reduce->all_reduce([](expected<reduction>) {});
      told.waiting(reduction{{}, static_cast<std::uint64_t>(i)});
    }
    return make_flight_dump({.generation = generation_id{generation}}, box->flight);
  };
  CHECK(run(1, 10).about.before == 0);
  const auto second = run(2, 20);
  CHECK(second.records.size() == 20);
  CHECK(second.about.before == 0);
  const auto third = run(3, 2000);
  CHECK(third.records.size() == flight_records_max);
  CHECK(third.about.before > 0);
}

TEST_CASE(
    "flight dump: a file cut off anywhere yields what stands before, and is known not to be whole (DU-1)") {
  const auto text = to_text(usual(5));
  const auto whole_header = text.find('\n') + 1;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto read = parse_flight_dump(text.substr(0, length));
    INFO(length);
    REQUIRE(read.has_value() == (length >= whole_header));
    if (read) CHECK(read->damage.starts_with("cut off: "));
  }
}

TEST_CASE("flight dump: a damaged line ends what is read; foreign and newer files are refused (DU-1, DU-2)") {
  auto text = to_text(usual(5));
  const auto third = text.find("\"id\":3");
  text.replace(third, 6, "\"id\":-3");
  const auto read = parse_flight_dump(text);
  REQUIRE(read);
  CHECK(read->records.size() == 2);
  CHECK(read->damage == "line 4: no record");

  CHECK(parse_flight_dump("").failure().text == "no whole line");
  CHECK(parse_flight_dump("{\"event\":\"job_started\"}\n").failure().text == "no flight dump");
  CHECK(parse_flight_dump("[1]\n").failure().code == errc::corrupt);
  CHECK(parse_flight_dump("{\"flight\":2}\n").failure().code == errc::wrong_version);
  CHECK(parse_flight_dump(std::string(flight_file_bytes_max + 1, 'x')).failure().code == errc::corrupt);
  auto many = to_text(usual(2));
  many += many.substr(many.find('\n') + 1);
  CHECK(parse_flight_dump(many)->damage == "line 4: more records than announced");
}

TEST_CASE("flight dump: names of files") {
  CHECK(flight_file_name(generation_id{3}, rank_id{12}) == "flight-3-12.jsonl");
  const auto which = parse_flight_file_name("flight-3-12.jsonl");
  REQUIRE(which);
  CHECK((which->generation == generation_id{3} && which->rank == rank_id{12}));
  for (const auto* name : {"flight-.jsonl", "flight-3.jsonl", "flight-3-.jsonl", "flight--1.jsonl",
                           "flight-3-12.json", "flight-3-5000.jsonl", "flight-3-1-2.jsonl", "flight.jsonl",
                           "flight-99999999999999999999-1.jsonl", "notes.txt", ""})
    CHECK_FALSE(parse_flight_file_name(name));
}

TEST_CASE("flight dump: a directory keeps the newest generations, and belongs to one run (DU-3)") {
  sim_storage files;
  for (std::uint64_t generation = 1; generation <= 20; ++generation) {
    auto dump = usual(2, generation);
    REQUIRE(write_flight_dump(files, "dumps", dump));
  }
  const std::string note = "mine";
  const std::array pieces{std::as_bytes(std::span{note})};
  REQUIRE(files.write_file("dumps/notes.txt", pieces));
  CHECK(files.list("dumps")->size() == flight_generations_kept + 1);
  REQUIRE(clear_flight_directory(files, "dumps"));
  CHECK(*files.list("dumps") == std::vector<std::string>{"notes.txt"});
}

} // namespace
} // namespace troupe
