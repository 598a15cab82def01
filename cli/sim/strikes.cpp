#include "cli/sim/strikes.hpp"

#include <algorithm>
#include <csignal>

#include "runtime/policy/timeouts.hpp"

namespace troupe::sim {
namespace {

constexpr std::uint64_t try_again_events = 25;

} // namespace

strikes::strikes(const fault_scenario& scenario, std::uint64_t seed, std::uint64_t events,
                 const workload& what, layout where, std::span<const named_mishap> more)
    : random_{seed, stream_of("strikes")}
    , events_{events}
    , steps_{what.steps()}
    , where_{where}
    , more_{more}
    , expected_{scenario.expected} {
  if (scenario.plan != nullptr) scenario.plan(*this);
}

std::uint64_t strikes::draw(std::uint64_t below) {
  return below == 0 ? 0 : random_.bits(draws_++) % below;
}

duration strikes::draw_between(duration low, duration high) {
  const auto width = static_cast<std::uint64_t>(std::max(high - low, duration{0}).count());
  return low + duration{static_cast<duration::rep>(draw(width + 1))};
}

void strikes::plan_job_fault(const std::string& spec) {
  const auto made = parse_fault(spec);
  invariant(made.has_value(), "strikes: their own fault specs parse");
  job_faults_.push_back(*made);
}

void strikes::plan_after(std::uint64_t events, mishap what) {
  plan(std::move(what), now_ + events);
}

void strikes::note_cut(cluster& in, duration length) {
  cuts_ += length;
  const auto limits = timeouts::derive(in.what().settings.detect_after);
  if (expected_.replaces_cut_off && cuts_ > limits.handshake_deadline) expected_.keeps_survivors = false;
}

void strikes::die_in_change(role whose, std::uint64_t changes_max) {
  writer_ = whose;
  changes_left_ = draw(changes_max);
}

void strikes::arm(cluster& in) {
  if (!writer_) return;
  in.before_change([this, &in](sim_process& who) { strike_writer(in, who); });
}

void strikes::strike_writer(cluster& in, sim_process& who) {
  const auto wanted = in.alive(*writer_);
  if (!std::ranges::count(wanted, who.pid()) || changes_left_-- != 0) return;
  tell(in, "process " + std::to_string(who.pid()) + " dies in a change to the disk");
  in.machine().world.kill(who.pid(), SIGKILL);
  const bool director = writer_ == role::director;
  in.before_change({});
  if (director) in.start_director();
}

void strikes::operator()(cluster& in) {
  now_ = in.machine().world.events();
  for (std::size_t i = 0; i < planned_.size() && !over_; ++i) { // a strike may plan another
    if (planned_[i].at > now_) continue;
    const auto what = std::move(planned_[i].what);
    planned_[i].at = ~std::uint64_t{0};
    if (auto said = what(in, *this))
      tell(in, std::move(*said));
    else
      plan(what, now_ + try_again_events);
  }
}

void strikes::tell(cluster& in, std::string what) {
  const auto& world = in.machine().world;
  told_.push_back({world.now().time_since_epoch(), world.events(), std::move(what)});
}

} // namespace troupe::sim
