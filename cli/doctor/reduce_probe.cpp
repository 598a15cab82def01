#include "cli/doctor/reduce_probe.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "bench/support/peer_link.hpp"
#include "transports/shm/shm_collective.hpp"

namespace troupe::doctor {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using json = nlohmann::json;

constexpr std::size_t elements = std::size_t{1} << 20U; // 4 MiB
constexpr std::uint32_t pair_rounds = 32;
constexpr duration limit = 20s; // for one answer

// Small whole numbers: their sums are exact, in whatever order they are added.
float value_at(std::size_t element, std::uint32_t rank) {
  return static_cast<float>(1 + element % 1000) * static_cast<float>(rank + 1);
}

float sum_at(std::size_t element, std::uint32_t world) {
  return static_cast<float>(1 + element % 1000) * static_cast<float>(world * (world + 1) / 2);
}

// -- A rank --

// {"seconds": S, "wrong": N} where N elements were wrong, or {"code": C, "text": T}.
json told(const error& cause) {
  return {{"code", static_cast<int>(cause.code)}, {"text", cause.text}};
}

expected<std::uint64_t> sum_once(communicator& member, std::uint32_t world) {
  expected<std::uint64_t> out{error{errc::internal, "the all-reduce did not answer"}};
  member.all_reduce([&](const expected<reduction>& done) {
    if (!done) {
      out = done.failure();
      return;
    }
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < done->sum.size(); ++i)
      if (done->sum[i] != sum_at(i, world)) ++wrong;
    out = wrong;
  });
  return out;
}

json take_part(const json& task) {
  const collective_shape shape{generation_id{task.at("generation").get<std::uint64_t>()},
                               task.at("world").get<std::uint32_t>(), task.at("world").get<std::uint32_t>(),
                               elements};
  const auto rank = task.at("rank").get<std::uint32_t>();
  const auto rounds = task.at("rounds").get<std::uint32_t>();
  shm_collective ranks;
  auto member = ranks.connect(task.at("descriptor").get<std::string>(), shape, rank_id{rank});
  if (!member) return told(member.failure());
  const auto own = (*member)->contribution(0);
  for (std::size_t i = 0; i < own.size(); ++i)
    own[i] = value_at(i, rank);
  const auto wrong = sum_once(**member, shape.world);
  if (!wrong) return told(wrong.failure());
  std::optional<error> failed;
  const auto begin = steady::now();
  for (std::uint32_t i = 0; i < rounds && !failed; ++i)
    (*member)->all_reduce([&](const expected<reduction>& done) {
      if (!done) failed = done.failure();
    });
  if (failed) return told(*failed);
  const auto seconds = std::chrono::duration<double>(steady::now() - begin).count();
  return {{"seconds", seconds}, {"wrong", *wrong}};
}

// -- The doctor --

struct outcome {
  double seconds{0}; // of the slowest rank
  reduce_trouble trouble{reduce_trouble::none};
  std::string text{};
};

reduce_trouble trouble_of(errc code) {
  if (code == errc::timed_out) return reduce_trouble::late;
  return code == errc::storage_failed ? reduce_trouble::memory : reduce_trouble::other;
}

class reduce_probe {
public:
  expected<void> start(std::uint32_t workers) {
    for (std::uint32_t i = 0; i < workers; ++i) {
      auto link = bench::peer_link::start({"doctor", "--probe", "all-reduce"});
      if (!link) return link.failure();
      links_.push_back(std::move(*link));
    }
    return {};
  }

  // One generation of these processes.
  outcome reduce(const std::vector<std::uint32_t>& members, std::uint32_t rounds) {
    const auto world = static_cast<std::uint32_t>(members.size());
    const auto descriptor = director_.prepare({generation_id{++generation_}, world, world, elements});
    if (!descriptor) return failed(descriptor.failure());
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const json task{{"descriptor", *descriptor},
                      {"generation", generation_},
                      {"world", world},
                      {"rank", rank},
                      {"rounds", rounds}};
      if (auto said = links_[members[rank]].say(task.dump()); !said) return failed(said.failure());
    }
    outcome out;
    for (const auto member : members)
      if (out.trouble == reduce_trouble::none) out = worse(out, answer_of(member));
    if (out.trouble != reduce_trouble::none) stop();
    return out;
  }

private:
  static outcome failed(const error& cause) { return {0, trouble_of(cause.code), cause.text}; }
  static outcome worse(const outcome& one, const outcome& other) {
    if (other.trouble != reduce_trouble::none) return other;
    return {std::max(one.seconds, other.seconds)};
  }

  outcome answer_of(std::uint32_t member) {
    const auto who = "worker " + std::to_string(member);
    const auto heard = links_[member].hear_within(limit);
    if (!heard) return failed({heard.failure().code, who + ": " + heard.failure().text});
    const auto answer = json::parse(*heard, nullptr, false);
    if (answer.is_object() && answer.contains("text"))
      return failed({static_cast<errc>(answer.value("code", 0)), who + ": " + answer.value("text", "")});
    if (!answer.is_object() || !answer.contains("seconds"))
      return failed({errc::corrupt, who + ": says nothing of use"});
    const auto wrong = answer.value("wrong", std::uint64_t{0});
    if (wrong == 0) return {answer.value("seconds", 0.0)};
    return {0, reduce_trouble::wrong_value,
            who + ": " + std::to_string(wrong) + " of " + std::to_string(elements) + " sums are wrong"};
  }

  // Who waits for one that does not come is let go; who does not come is killed.
  void stop() {
    director_.end_generation();
    for (auto& link : links_)
      link.kill();
  }

  shm_collective director_;
  std::vector<bench::peer_link> links_;
  std::uint64_t generation_{0};
};

} // namespace

reduce_facts probe_reduce(std::uint32_t workers) {
  reduce_facts out{.workers = workers, .bytes = elements * sizeof(float)};
  const auto note = [&](const outcome& what) {
    out.trouble = what.trouble;
    out.failure = what.text;
    return what.trouble == reduce_trouble::none;
  };
  reduce_probe probe;
  if (auto started = probe.start(workers); !started) {
    note({0, reduce_trouble::other, started.failure().text});
    return out;
  }
  std::vector<std::uint32_t> all;
  for (std::uint32_t i = 0; i < workers; ++i)
    all.push_back(i);
  if (!note(probe.reduce(all, 1))) return out;
  for (std::uint32_t one = 0; one < workers; ++one) {
    for (std::uint32_t other = one + 1; other < workers; ++other) {
      const auto measured = probe.reduce({one, other}, pair_rounds);
      if (!note(measured)) return out;
      const auto bytes = static_cast<double>(out.bytes) * pair_rounds;
      out.pairs.push_back({one, other, measured.seconds > 0 ? bytes / measured.seconds : 0});
    }
  }
  return out;
}

int answer_reduce_probe(int fd) {
  auto link = bench::peer_link::inherited(fd);
  for (;;) { // until the doctor closes its end
    const auto heard = link.hear();
    if (!heard) return 0;
    const auto task = json::parse(*heard, nullptr, false);
    if (task.is_discarded()) return 1;
    if (auto said = link.say(take_part(task).dump()); !said) return 0;
  }
}

} // namespace troupe::doctor
