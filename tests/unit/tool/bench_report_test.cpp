#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "bench/support/bench_report.hpp"
#include "bench/support/quantiles.hpp"

namespace troupe::bench {
namespace {

TEST_CASE("quantiles: of few values") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({4, 1, 3}) == 3);
  CHECK(median({4, 1}) == 2.5);
  CHECK(quantile({5, 1, 2, 4, 3}, 0.5) == 3);
  CHECK(quantile({5, 1, 2, 4, 3}, 0.99) == 5);
  CHECK(quantile({5, 1}, 0) == 1);
  CHECK(ratios({4, 9, 1}, {2, 3}) == std::vector<double>{2, 3});
  CHECK(ratios({4}, {0}).empty());
}

TEST_CASE("bench report: the table has the columns of all rows, and - for what a row lacks") {
  const auto text =
      table({{{"system", "bare"}, {"step_ms", {{"p50", 1.25}, {"p99", nullptr}}}},
             {{"system", "troupe"}, {"step_ms", {{"p50", 12.5}}}, {"kept", true}, {"n", 123456}}});
  CHECK(text == "system  step_ms p50  step_ms p99  kept       n\n"
                "bare          1.250            -  -          -\n"
                "troupe        12.50            -  yes   123456\n");
}

TEST_CASE("bench report: JSON has the contract's fields, and a check says whether it is met") {
  bench_report report{.bench = "step", .rows = {{{"system", "bare"}}}};
  report.checks = {{"speed", 1.7, 1.6, true}, {"delay", 60, 50, false, " ms"}};
  report.ratios = {{"one / other", 1.25, "at most 1.4"}};
  const auto read = row::parse(to_json(report, machine_now()));
  CHECK(read.at("bench") == "step");
  CHECK(read.at("machine").at("cores") >= 1);
  CHECK(read.at("rows").size() == 1);
  CHECK(read.at("checks").at(0).at("good") == true);
  CHECK(read.at("checks").at(1).at("good") == false);
  CHECK(read.at("checks").at(1).at("at_most") == 50);
  CHECK(read.at("ratios").at(0).at("value") == 1.25);
  CHECK(to_text(report, machine_now()).find("ratio one / other: 1.250 (aim: at most 1.4)\n") !=
        std::string::npos);
  CHECK(to_text(report, machine_now()).find("MISS  delay: 60 ms, at most 50 ms") != std::string::npos);
}

} // namespace
} // namespace troupe::bench
