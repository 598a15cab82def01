#include <algorithm>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "bench/collective/allreduce_rows.hpp"

namespace troupe::bench {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20U;

allreduce_series measured(allreduce_series of, const std::vector<double>& p50s) {
  of.program = of.system;
  for (const double p50 : p50s) {
    const row said{{"ranks", of.ranks},
                   {"bytes", of.bytes},
                   {"time_us", {{"min", p50 / 2}, {"p50", p50}, {"p99", p50 * 2}}}};
    REQUIRE(add_run(of, said.dump()));
  }
  return of;
}

allreduce_series canonical(std::uint32_t ranks, std::size_t bytes, const std::vector<double>& p50s) {
  return measured({.system = "troupe-shm", .ranks = ranks, .bytes = bytes, .canonical = true, .shards = 8},
                  p50s);
}

allreduce_series other(const std::string& system, std::uint32_t ranks, std::size_t bytes,
                       const std::vector<double>& p50s) {
  return measured({.system = system, .ranks = ranks, .bytes = bytes}, p50s);
}

const ratio* find(const std::vector<ratio>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &ratio::name);
  return found == all.end() ? nullptr : &*found;
}

TEST_CASE("allreduce rows: a row has the contract's fields, medians over the repetitions") {
  const auto own = row_of(canonical(4, mib, {100, 400, 200}));
  CHECK(own.at("system") == "troupe-shm");
  CHECK(own.at("canonical") == true);
  CHECK(own.at("ranks") == 4);
  CHECK(own.at("shards") == 8);
  CHECK(own.at("bytes") == mib);
  CHECK(own.at("time_us").at("min") == 100);
  CHECK(own.at("time_us").at("p50") == 200);
  CHECK(own.at("time_us").at("p99") == 400);
  CHECK(own.at("algbw_gb_s").get<double>() == Catch::Approx(1048576 / 200e3));
  CHECK(own.at("busbw_gb_s").get<double>() == Catch::Approx(1.5 * 1048576 / 200e3));
  const auto copied = row_of(other("memcpy", 2, mib, {100}));
  CHECK(copied.at("canonical") == false);
  CHECK(copied.at("shards").is_null());
  CHECK(copied.at("busbw_gb_s") == copied.at("algbw_gb_s"));
}

TEST_CASE("allreduce rows: what is not a program's result is refused, with the program's name") {
  allreduce_series series{.system = "gloo", .program = "allreduce_gloo", .bytes = 4096};
  for (const std::string text :
       {"", "no JSON", "{}", R"({"bytes":4096,"time_us":{"min":1,"p50":"slow","p99":1}})",
        R"({"bytes":8192,"time_us":{"min":1,"p50":1,"p99":1}})",
        R"({"bytes":4096,"time_us":{"min":0,"p50":0,"p99":1}})"}) {
    const auto added = add_run(series, text);
    REQUIRE_FALSE(added);
    CHECK(added.failure().code == errc::corrupt);
    CHECK(added.failure().text.starts_with("allreduce_gloo: "));
  }
  CHECK(series.p50_us.empty());
  REQUIRE(add_run(series, R"({"bytes":4096,"time_us":{"min":1,"p50":1,"p99":2},"algorithm":"ring"})"));
  CHECK(series.algorithms == std::vector<std::string>{"ring"});
}

TEST_CASE("allreduce rows: ratios are medians of neighbours, against the fastest baseline of each run") {
  const std::vector all{
      canonical(2, mib, {100, 200, 100}),
      measured({.system = "troupe-shm", .ranks = 2, .bytes = mib, .shards = 2}, {100, 100, 50}),
      other("gloo", 2, mib, {1000, 500, 300}), other("openmpi", 2, mib, {300, 600, 900})};
  const auto found = ratios_of(all);
  const auto* best = find(found, "time, the fastest of Gloo and Open MPI / troupe, 2 ranks, 1MiB");
  REQUIRE(best != nullptr);
  CHECK(best->value == Catch::Approx(3)); // of 3, 2.5, 3
  CHECK(best->aim == "at least 1.7");
  const auto* plain = find(found, "time, 8 shards / a shard a rank, 2 ranks, 1MiB");
  REQUIRE(plain != nullptr);
  CHECK(plain->value == Catch::Approx(2));
  CHECK(plain->aim == "at most 1.15");
  CHECK(found.size() == 2);
}

TEST_CASE("allreduce rows: small sums are held against Open MPI, large ones against memory copies") {
  const auto found = ratios_of({canonical(2, 4096, {4}), other("openmpi", 2, 4096, {2}),
                                other("openmpi-kept-memory", 2, 4096, {1}), canonical(2, 64 * mib, {5000}),
                                other("memcpy", 1, 64 * mib, {4000}), other("memcpy", 2, 64 * mib, {2000})});
  const auto* small = find(found, "time, troupe / Open MPI, 2 ranks, 4KiB");
  REQUIRE(small != nullptr);
  CHECK(small->value == Catch::Approx(2));
  const auto* one = find(found, "bandwidth, troupe with 2 ranks / one copying processor, 64 MiB");
  REQUIRE(one != nullptr);
  CHECK(one->value == Catch::Approx(0.8));
  CHECK(one->aim == "at least 0.75");
  const auto* fastest =
      find(found, "bandwidth, troupe with 2 ranks / one copying processor, 64 MiB, fastest iterations");
  REQUIRE(fastest != nullptr);
  CHECK(fastest->value == Catch::Approx(0.8));
  CHECK(fastest->aim.empty());
  const auto* two = find(found, "bandwidth, troupe with 2 ranks / two copying processors, 64 MiB");
  REQUIRE(two != nullptr);
  CHECK(two->value == Catch::Approx(0.4));
  CHECK(two->aim.empty());
  CHECK(ratios_of({other("gloo", 2, mib, {1})}).empty());
}

} // namespace
} // namespace troupe::bench
