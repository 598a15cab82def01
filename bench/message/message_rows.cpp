#include "bench/message/message_rows.hpp"

#include <algorithm>

#include "bench/support/quantiles.hpp"

namespace troupe::bench {
namespace {

const message_series* find(const std::vector<message_series>& all, const std::string& system,
                           const std::string& lane, const std::string& wake) {
  const auto found = std::ranges::find_if(all, [&](const message_series& each) {
    return each.system == system && each.lane == lane && each.wake == wake && !each.half_rtt_p50.empty();
  });
  return found == all.end() ? nullptr : &*found;
}

row base_row(const message_series& from, std::size_t bytes) {
  return {{"system", from.system},
          {"lane", from.lane},
          {"wake", from.wake},
          {"bytes", bytes},
          {"half_rtt_us", {{"p50", nullptr}, {"p99", nullptr}}},
          {"messages_per_s", nullptr},
          {"bytes_per_s", nullptr},
          {"allocations", {{"sender", nullptr}, {"receiver", nullptr}}}};
}

row middle(const std::vector<double>& values) {
  return values.empty() ? row() : row(median(values));
}

} // namespace

expected<void> add_run(message_series& to, const std::string& output) {
  const auto said = row::parse(output, nullptr, false);
  try {
    to.half_rtt_p50.push_back(said.at("round_trip").at("p50_us"));
    to.half_rtt_p99.push_back(said.at("round_trip").at("p99_us"));
    const auto& stream = said.at("stream");
    to.messages_per_s.push_back(stream.at("messages").get<double>() / stream.at("seconds").get<double>());
    const auto& bulk = said.at("bulk");
    to.bytes_per_s.push_back(bulk.at("messages").get<double>() * bulk.at("bytes").get<double>() /
                             bulk.at("seconds").get<double>());
    if (said.contains("urgent")) {
      for (const auto& [name, into] :
           {std::pair{"idle", &to.urgent_idle}, std::pair{"beside_bulk", &to.urgent_beside_bulk}}) {
        into->p50.push_back(said.at("urgent").at(name).at("p50_us"));
        into->p99.push_back(said.at("urgent").at(name).at("p99_us"));
      }
    }
    for (const auto& note : said.at("notes"))
      to.notes.push_back(note);
    if (said.contains("allocations")) to.allocations = said.at("allocations");
  } catch (const nlohmann::json::exception& malformed) {
    return error{errc::corrupt, to.program + ": " + malformed.what()};
  }
  return {};
}

std::vector<row> rows_of(const message_series& from) {
  std::vector<row> rows{base_row(from, 8), base_row(from, 100), base_row(from, std::size_t{1} << 20U)};
  rows[0]["half_rtt_us"] = {{"p50", middle(from.half_rtt_p50)}, {"p99", middle(from.half_rtt_p99)}};
  if (!from.messages_per_s.empty()) {
    const auto each = median(from.messages_per_s);
    rows[1]["messages_per_s"] = each;
    rows[1]["bytes_per_s"] = each * 100;
  }
  if (!from.bytes_per_s.empty()) {
    const auto bytes = median(from.bytes_per_s);
    rows[2]["messages_per_s"] = bytes / static_cast<double>(1U << 20U);
    rows[2]["bytes_per_s"] = bytes;
  }
  if (from.allocations) {
    rows[0]["allocations"]["sender"] = from.allocations->at("round_trip"); // both: one out, one in
    rows[1]["allocations"]["sender"] = from.allocations->at("sender");
    rows[1]["allocations"]["receiver"] = from.allocations->at("receiver");
  }
  if (from.urgent_idle.p50.empty()) return rows;
  for (const auto& [path, series] :
       {std::pair{"idle", &from.urgent_idle}, std::pair{"beside 64 MiB of bulk", &from.urgent_beside_bulk}}) {
    auto& added = rows.emplace_back(base_row(from, 8));
    added["half_rtt_us"] = {{"p50", middle(series->p50)}, {"p99", middle(series->p99)}};
    added["urgent"] = path;
  }
  return rows;
}

std::vector<ratio> ratios_of(const std::vector<message_series>& all) {
  std::vector<ratio> out;
  const auto add = [&](const std::string& name, const std::vector<double>& one,
                       const std::vector<double>& other, const std::string& aim) {
    if (const auto pairs = ratios(one, other); !pairs.empty()) out.push_back({name, median(pairs), aim});
  };
  for (const std::string lane : {"tcp", "shm"}) {
    for (const std::string wake : {"sleep", "poll"}) {
      const auto* own = find(all, "troupe", lane, wake);
      const auto* raw = find(all, "ucx_perftest", lane, wake);
      if (own == nullptr || raw == nullptr) continue;
      const auto where = ", " + lane + ", " + wake;
      add("round trip of an urgent message, beside 64 MiB of bulk / on the idle path" + where,
          own->urgent_beside_bulk.p50, own->urgent_idle.p50, "");
      add("half round trip of 8 B, troupe / raw UCX" + where, own->half_rtt_p50, raw->half_rtt_p50,
          "at most 1.4");
      add("messages of 100 B a second, troupe / raw UCX" + where, own->messages_per_s, raw->messages_per_s,
          "");
      add("bandwidth of 1 MiB payloads, troupe / raw UCX" + where, own->bytes_per_s, raw->bytes_per_s,
          "at least 0.9");
    }
  }
  const auto* own = find(all, "troupe", "tcp", "sleep");
  if (own == nullptr) return out;
  if (const auto* other = find(all, "grpc", "tcp", "sleep"); other != nullptr)
    add("half round trip of 8 B, troupe / gRPC", own->half_rtt_p50, other->half_rtt_p50, "at most 1");
  if (const auto* other = find(all, "caf_io", "tcp", "sleep"); other != nullptr)
    add("half round trip of 8 B, CAF's network module / troupe", other->half_rtt_p50, own->half_rtt_p50,
        "at least 5");
  if (const auto* other = find(all, "caf_io_sharing", "tcp", "sleep"); other != nullptr)
    add("half round trip of 8 B, CAF's network module with its scheduler `sharing` / troupe",
        other->half_rtt_p50, own->half_rtt_p50, "");
  out.push_back({"messages of 100 B a second one way, troupe, tcp, sleep / 800,000",
                 median(own->messages_per_s) / 800'000, "at least 1"});
  return out;
}

} // namespace troupe::bench
