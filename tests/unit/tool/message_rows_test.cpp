#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "bench/message/message_rows.hpp"

namespace troupe::bench {
namespace {

std::string said(double p50_us, double messages_per_s, double bulk_s) {
  return row{{"round_trip", {{"bytes", 8}, {"p50_us", p50_us}, {"p99_us", p50_us * 2}}},
             {"stream", {{"bytes", 100}, {"messages", 1000}, {"seconds", 1000 / messages_per_s}}},
             {"bulk", {{"bytes", 1U << 20U}, {"messages", 10}, {"seconds", bulk_s}}},
             {"notes", row::array()}}
      .dump();
}

message_series measured(const std::string& system, std::vector<double> p50s, double messages_per_s) {
  message_series out{.system = system, .program = system};
  for (const double p50 : p50s)
    REQUIRE(add_run(out, said(p50, messages_per_s, 0.01)));
  return out;
}

TEST_CASE("message rows: a row has the contract's fields, medians over the repetitions") {
  auto series = measured("troupe", {10, 30, 20}, 500'000);
  series.allocations = row{{"round_trip", 3.0}, {"sender", 1.0}, {"receiver", 2.0}};
  const auto rows = rows_of(series);
  REQUIRE(rows.size() == 3);
  for (const auto& one : rows) {
    CHECK(one.at("system") == "troupe");
    CHECK(one.at("lane") == "tcp");
    CHECK(one.at("wake") == "sleep");
  }
  CHECK(rows[0].at("bytes") == 8);
  CHECK(rows[0].at("half_rtt_us").at("p50") == 20);
  CHECK(rows[0].at("half_rtt_us").at("p99") == 40);
  CHECK(rows[0].at("messages_per_s").is_null());
  CHECK(rows[1].at("bytes") == 100);
  CHECK(rows[1].at("messages_per_s").get<double>() == Catch::Approx(500'000));
  CHECK(rows[1].at("bytes_per_s").get<double>() == Catch::Approx(50'000'000));
  CHECK(rows[1].at("allocations").at("receiver") == 2.0);
  CHECK(rows[2].at("bytes") == 1U << 20U);
  CHECK(rows[2].at("messages_per_s").get<double>() == Catch::Approx(1000));
}

TEST_CASE("message rows: urgent messages have rows of their own, and a ratio of busy to idle") {
  message_series own{.system = "troupe", .program = "troupe"};
  for (const double busy : {40.0, 90.0, 60.0}) {
    auto told = row::parse(said(20, 400'000, 0.01));
    told["urgent"] = {{"idle", {{"p50_us", 10.0}, {"p99_us", 30.0}}},
                      {"beside_bulk", {{"p50_us", busy}, {"p99_us", busy * 4}}}};
    REQUIRE(add_run(own, told.dump()));
  }
  const auto rows = rows_of(own);
  REQUIRE(rows.size() == 5);
  CHECK(rows[3].at("urgent") == "idle");
  CHECK(rows[3].at("half_rtt_us").at("p50") == 10);
  CHECK(rows[4].at("urgent") == "beside 64 MiB of bulk");
  CHECK(rows[4].at("half_rtt_us").at("p99") == 240);
  const auto found = ratios_of({own, measured("ucx_perftest", {10, 10, 10}, 800'000)});
  CHECK(found.front().name ==
        "round trip of an urgent message, beside 64 MiB of bulk / on the idle path, tcp, sleep");
  CHECK(found.front().value == Catch::Approx(6)); // of 4, 9, 6
}

TEST_CASE("message rows: what is not a program's result is refused, with the program's name") {
  message_series series{.system = "troupe", .program = "message_troupe"};
  for (const std::string text : {"", "no JSON", "{}", R"({"round_trip":{"p50_us":"slow"}})"}) {
    const auto added = add_run(series, text);
    REQUIRE_FALSE(added);
    CHECK(added.failure().code == errc::corrupt);
    CHECK(added.failure().text.starts_with("message_troupe: "));
  }
}

TEST_CASE("message rows: ratios are medians of neighbours, and absent where there is no baseline") {
  const auto own = measured("troupe", {20, 40, 60}, 400'000);
  const auto raw = measured("ucx_perftest", {10, 10, 20}, 800'000);
  const auto slow = measured("caf_io", {200, 200, 600}, 10'000);
  const auto found = ratios_of({own, raw, slow});
  REQUIRE(found.size() == 5);
  CHECK(found[0].name == "half round trip of 8 B, troupe / raw UCX, tcp, sleep");
  CHECK(found[0].value == Catch::Approx(3)); // of 2, 4, 3
  CHECK(found[0].aim == "at most 1.4");
  CHECK(found[1].value == Catch::Approx(0.5));
  CHECK(found[2].value == Catch::Approx(1));
  CHECK(found[3].name == "half round trip of 8 B, CAF's network module / troupe");
  CHECK(found[3].value == Catch::Approx(10)); // of 10, 5, 10
  CHECK(found[4].value == Catch::Approx(0.5));
  CHECK(ratios_of({raw, slow}).empty());
}

} // namespace
} // namespace troupe::bench
