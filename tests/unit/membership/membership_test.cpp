#include <map>
#include <set>

#include <catch2/catch_test_macros.hpp>

#include "runtime/base/counter_rng.hpp"
#include "runtime/policy/membership.hpp"

namespace troupe {
namespace {

namespace action = membership_action;
using std::chrono::seconds;

incarnation_id incarnation(std::uint64_t n) {
  return {n, 1};
}

membership_settings settings_for(std::uint32_t slots, std::uint32_t external = 0) {
  return {.slots = slots,
          .external_slots = external,
          .workers_min = 1,
          .join_deadline = seconds{10},
          .answer_deadline = seconds{5},
          .replacement_wait = seconds{30}};
}

template <class Action>
const Action* find(const membership::outputs& out) {
  for (const auto& one : out) {
    if (const auto* found = std::get_if<Action>(&one)) return found;
  }
  return nullptr;
}

// A job of `slots` workers that runs its first generation from nothing.
struct running_job {
  explicit running_job(std::uint32_t slots)
      : brain{settings_for(slots)} {
    (void)brain.start(t);
    for (std::uint32_t i = 0; i < slots; ++i)
      last = brain.on_ready(i, incarnation(i), t);
    last = brain.on_resume_point(resume_point{}, t);
    for (std::uint32_t i = 0; i < slots; ++i)
      last = prepared(i, step_id{0});
  }
  membership::outputs prepared(std::uint64_t who, step_id step) {
    return brain.on_prepared(incarnation(who), brain.generation(), step, t);
  }
  membership::outputs stopped(std::uint64_t who, std::uint64_t step) {
    return brain.on_stopped(incarnation(who), brain.generation(), step_id{step}, true, t);
  }
  time_point t{};
  membership brain;
  membership::outputs last;
};

TEST_CASE("membership: a generation starts only when every member has prepared it (MS-2)") {
  membership brain{settings_for(2)};
  const time_point t{};
  CHECK(brain.start(t).size() == 2);
  CHECK(brain.on_ready(0, incarnation(0), t).empty());
  CHECK(find<action::find_resume_point>(brain.on_ready(1, incarnation(1), t)) != nullptr);
  const auto out = brain.on_resume_point(resume_point{step_id{40}, "step-40"}, t);
  const auto* prepare = find<action::prepare_generation>(out);
  REQUIRE(prepare != nullptr);
  CHECK(prepare->plan.generation == generation_id{1});
  CHECK(prepare->plan.members[0].source == member_source::checkpoint);
  CHECK(brain.on_prepared(incarnation(0), generation_id{1}, step_id{40}, t).empty());
  const auto started = brain.on_prepared(incarnation(1), generation_id{1}, step_id{40}, t);
  CHECK(find<action::start_generation>(started) != nullptr);
  CHECK(brain.current_phase() == membership::phase::running);
}

TEST_CASE("membership: a replacement goes on from the newest step a survivor holds (MS-3)") {
  running_job job{3};
  auto out = job.brain.on_lost(1, "killed", job.t);
  CHECK(find<action::start_process>(out)->slot == 1);
  CHECK(find<action::end_generation>(out)->members.size() == 2);
  CHECK(job.stopped(0, 200).empty());
  CHECK(job.stopped(2, 201).empty());
  out = job.brain.on_ready(1, incarnation(9), job.t);
  const auto* prepare = find<action::prepare_generation>(out);
  REQUIRE(prepare != nullptr);
  CHECK(prepare->plan.step == step_id{201});
  CHECK(prepare->plan.members[0].source == member_source::peer);
  CHECK(prepare->plan.members[0].source_rank == rank_id{2});
  CHECK(prepare->plan.members[1].source == member_source::peer);
  CHECK(prepare->plan.members[2].source == member_source::keep);
}

TEST_CASE("membership: many replacements get the state by a tree of peers (MS-6)") {
  running_job job{8};
  for (std::uint32_t slot = 1; slot < 8; ++slot)
    (void)job.brain.on_lost(slot, "killed", job.t);
  (void)job.stopped(0, 30);
  membership::outputs out;
  for (std::uint32_t slot = 1; slot < 8; ++slot)
    out = job.brain.on_ready(slot, incarnation(10 + slot), job.t);
  const auto* prepare = find<action::prepare_generation>(out);
  REQUIRE(prepare != nullptr);
  const auto& members = prepare->plan.members;
  CHECK(members[0].source == member_source::keep);
  std::vector<std::uint32_t> sources;
  for (std::uint32_t rank = 1; rank < 8; ++rank) {
    CHECK(members[rank].source == member_source::peer);
    sources.push_back(members[rank].source_rank.value());
  }
  CHECK(sources == std::vector<std::uint32_t>{0, 0, 1, 0, 1, 2, 3});
}

TEST_CASE("membership: when nobody holds state the storage is asked") {
  running_job job{1};
  (void)job.brain.on_lost(0, "killed", job.t);
  CHECK(find<action::find_resume_point>(job.brain.on_ready(0, incarnation(5), job.t)) != nullptr);
}

TEST_CASE("membership: answers of an ended generation change nothing (MS-5)") {
  running_job job{2};
  const auto old = job.brain.generation();
  (void)job.brain.on_worker_failed(incarnation(1), "threw", job.t);
  (void)job.stopped(0, 7);
  const auto out = job.brain.on_stopped(incarnation(1), old, step_id{0}, false, job.t);
  REQUIRE(find<action::prepare_generation>(out) != nullptr);
  CHECK(job.brain.generation() == old.next());
  CHECK(job.brain.on_prepared(incarnation(0), old, step_id{7}, job.t).empty());
  CHECK(job.brain.on_finished(incarnation(0), old).empty());
  CHECK(job.brain.current_phase() == membership::phase::preparing);
}

TEST_CASE("membership: a member that does not answer is killed, once a deadline") {
  running_job job{2};
  (void)job.brain.on_lost(1, "killed", job.t);
  CHECK(job.brain.on_tick(job.t + seconds{4}).empty());
  const auto out = job.brain.on_tick(job.t + seconds{6});
  REQUIRE(find<action::kill_process>(out) != nullptr);
  CHECK(find<action::kill_process>(out)->slot == 0);
  CHECK(find<action::kill_process>(job.brain.on_tick(job.t + seconds{7})) == nullptr);
}

TEST_CASE("membership: an external slot is waited for, then the job goes on without it or ends") {
  auto settings = settings_for(1, 1);
  const time_point t{};
  membership brain{settings};
  (void)brain.start(t);
  CHECK(brain.free_external_slot() == 1U);
  CHECK(brain.on_ready(0, incarnation(0), t).empty());
  CHECK(find<action::find_resume_point>(brain.on_tick(t + seconds{31})) != nullptr);

  settings.workers_min = 2;
  membership strict{settings};
  (void)strict.start(t);
  (void)strict.on_ready(0, incarnation(0), t);
  const auto out = strict.on_tick(t + seconds{31});
  const auto* finish = find<action::finish_job>(out);
  REQUIRE(finish != nullptr);
  CHECK(finish->cause->code == errc::too_few_workers);
}

TEST_CASE("membership: members of one host get ranks that follow one another, the director's first (RO-1)") {
  auto settings = settings_for(1, 3);
  settings.machine = "here";
  const time_point t{};
  membership brain{settings};
  (void)brain.start(t);
  (void)brain.on_ready(1, incarnation(1), t, "b");
  (void)brain.on_ready(2, incarnation(2), t, "c");
  (void)brain.on_ready(0, incarnation(0), t, "here");
  (void)brain.on_ready(3, incarnation(3), t, "c");
  const auto out = brain.on_resume_point(resume_point{}, t);
  const auto* prepare = find<action::prepare_generation>(out);
  REQUIRE(prepare != nullptr);
  std::vector<std::uint32_t> slots;
  std::vector<std::uint32_t> hosts;
  for (const auto& member : prepare->plan.members) {
    slots.push_back(member.slot);
    hosts.push_back(member.host);
  }
  CHECK(slots == std::vector<std::uint32_t>{0, 2, 3, 1});
  CHECK(hosts == std::vector<std::uint32_t>{0, 1, 1, 2});
  CHECK(brain.rank_of(incarnation(1)) == rank_id{3});
}

TEST_CASE("membership: a checkpoint that cannot be loaded is looked for again, with a limit") {
  membership brain{settings_for(1)};
  const time_point t{};
  (void)brain.start(t);
  (void)brain.on_ready(0, incarnation(0), t);
  for (int attempt = 1; attempt <= 5; ++attempt) {
    (void)brain.on_resume_point(resume_point{step_id{4}, "step-4"}, t);
    const auto code = attempt % 2 == 0 ? errc::corrupt : errc::not_found; // damaged, or lost meanwhile
    const auto out = brain.on_prepare_failed(incarnation(0), brain.generation(), {code, "digest"}, t);
    if (attempt == 5) {
      REQUIRE(find<action::finish_job>(out) != nullptr);
      break;
    }
    REQUIRE(find<action::end_generation>(out) != nullptr);
    const auto again = brain.on_stopped(incarnation(0), brain.generation(), step_id{0}, false, t);
    REQUIRE(find<action::find_resume_point>(again) != nullptr);
  }
}

TEST_CASE("membership: who cannot reach its peer for the second time is replaced") {
  running_job job{2};
  auto& brain = job.brain;
  (void)brain.on_worker_failed(incarnation(1), "thrown", job.t);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    (void)brain.on_stopped(incarnation(0), brain.generation(), step_id{3}, true, job.t);
    (void)brain.on_stopped(incarnation(1), brain.generation(), step_id{0}, false, job.t);
    REQUIRE(brain.current_phase() == membership::phase::preparing);
    const auto out =
        brain.on_prepare_failed(incarnation(1), brain.generation(), {errc::path_lost, "no path"}, job.t);
    REQUIRE(find<action::end_generation>(out) != nullptr);
    const auto* killed = find<action::kill_process>(out);
    REQUIRE((killed != nullptr) == (attempt == 2));
    if (killed != nullptr) CHECK(killed->slot == 1);
  }
}

TEST_CASE("membership: all finished ends the job") {
  running_job job{2};
  CHECK(job.brain.on_finished(incarnation(0), job.brain.generation()).empty());
  const auto out = job.brain.on_finished(incarnation(1), job.brain.generation());
  REQUIRE(find<action::finish_job>(out) != nullptr);
  CHECK_FALSE(find<action::finish_job>(out)->cause.has_value());
}

// A crowd of members that answers, dies and fails at random moments of a seed.
struct crowd {
  struct process {
    incarnation_id id;
    bool starting{false}, alive{false}, holds{false};
    std::uint64_t step{0};
    generation_id ending, preparing;
    step_id prepare_step;
    bool must_stop{false}, must_prepare{false};
  };
  explicit crowd(std::uint64_t seed)
      : random{seed, stream_of("crowd")}
      , brain{settings_for(4)}
      , all(4) {}

  std::uint64_t draw(std::uint64_t below) { return random.bits(position++) % below; }

  void apply(const membership::outputs& out) {
    for (const auto& one : out) {
      if (const auto* a = std::get_if<action::start_process>(&one)) all[a->slot] = {.starting = true};
      if (const auto* a = std::get_if<action::end_generation>(&one)) {
        for (auto& p : all) {
          if (!p.alive) continue;
          p.must_prepare = false;
          for (const auto& id : a->members)
            p.must_stop = p.must_stop || id == p.id;
          p.ending = a->generation;
        }
      }
      if (std::holds_alternative<action::find_resume_point>(one)) asked = true;
      if (const auto* a = std::get_if<action::prepare_generation>(&one)) check_plan(a->plan);
      if (std::holds_alternative<action::start_generation>(one)) {
        for (const auto& p : all)
          REQUIRE((!p.alive || (p.preparing == brain.generation() && p.holds))); // MS-2
      }
    }
  }

  void check_plan(const generation_plan& plan) {
    REQUIRE(plan.generation > newest_generation); // MS-1
    newest_generation = plan.generation;
    std::uint64_t newest_held = 0;
    for (const auto& p : all) {
      REQUIRE((!p.alive || !p.must_stop)); // MS-4
      if (p.alive && p.holds) newest_held = std::max(newest_held, p.step);
    }
    REQUIRE(plan.step.value() >= newest_held); // MS-3
    for (const auto& m : plan.members) {
      auto& p = all[m.slot];
      REQUIRE(p.id == m.incarnation);
      if (m.source == member_source::keep) REQUIRE((p.holds && p.step == plan.step.value()));
      if (m.source == member_source::peer) check_chain(plan, m);
      p.must_prepare = true;
      p.preparing = plan.generation;
      p.prepare_step = plan.step;
    }
  }

  // MS-6
  void check_chain(const generation_plan& plan, const generation_member& joiner) {
    const auto* at = &joiner;
    for (std::size_t hops = 0; at->source == member_source::peer; ++hops) {
      REQUIRE(hops < plan.members.size());
      at = &plan.members[at->source_rank.value()];
    }
    REQUIRE(at->source == member_source::keep);
    REQUIRE((all[at->slot].holds && all[at->slot].step == plan.step.value()));
  }

  void act() {
    auto& p = all[draw(4)];
    const auto slot = static_cast<std::uint32_t>(&p - all.data());
    if (p.starting && draw(2) == 0) {
      p = {.id = incarnation(++births), .alive = true};
      apply(brain.on_ready(slot, p.id, t));
    } else if (p.alive && p.must_stop) {
      p.must_stop = false;
      apply(brain.on_stopped(p.id, p.ending, step_id{p.step}, p.holds, t));
    } else if (p.alive && p.must_prepare) {
      p.must_prepare = false;
      p.holds = true;
      p.step = p.prepare_step.value();
      apply(brain.on_prepared(p.id, p.preparing, p.prepare_step, t));
    } else if (p.alive && brain.current_phase() == membership::phase::running && draw(3) == 0) {
      ++p.step;
    } else if (faults && (p.alive || p.starting) && draw(8) == 0) {
      p = {};
      apply(brain.on_lost(slot, "killed", t));
    } else if (faults && p.alive && draw(12) == 0) {
      p.holds = false;
      apply(brain.on_worker_failed(p.id, "threw", t));
    }
    if (asked && draw(2) == 0) {
      asked = false;
      apply(brain.on_resume_point(resume_point{}, t));
    }
  }

  counter_rng random;
  std::uint64_t position{0}, births{100};
  membership brain;
  std::vector<process> all;
  generation_id newest_generation;
  bool asked{false}, faults{true};
  time_point t{};
};

TEST_CASE("membership: under random failures the invariants hold and a healthy core always runs again") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    crowd job{seed};
    job.apply(job.brain.start(job.t));
    for (int i = 0; i < 400; ++i)
      job.act();
    job.faults = false;
    for (int i = 0; i < 400; ++i)
      job.act();
    INFO("seed " << seed);
    REQUIRE(job.brain.current_phase() == membership::phase::running);
  }
}

TEST_CASE("membership: a refused step costs nobody its state: all keep it in the next generation (MS-3)") {
  running_job job{3};
  const auto out = job.brain.on_step_refused("not finite", job.t);
  const auto* ended = find<action::end_generation>(out);
  REQUIRE(ended != nullptr);
  CHECK(ended->members.size() == 3);
  CHECK(ended->cause == "not finite");
  CHECK(job.brain.on_step_refused("not finite", job.t).empty()); // it is over already
  for (std::uint64_t who = 0; who < 3; ++who)
    job.last = job.stopped(who, 7);
  const auto* next = find<action::prepare_generation>(job.last);
  REQUIRE(next != nullptr);
  CHECK(next->plan.step == step_id{7});
  for (const auto& member : next->plan.members)
    CHECK(member.source == member_source::keep);
}

} // namespace
} // namespace troupe
