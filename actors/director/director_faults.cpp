// Injected faults, as the director sees them: which strikes happened, who shares one, when a stop is over.
#include <csignal>

#include "actors/director/director_core.hpp"
#include "runtime/base/probe.hpp"

namespace troupe {

std::optional<std::size_t> director_core::note_fault(std::uint32_t index) {
  auto& slot = slots_[index];
  if (slot.box == nullptr) return std::nullopt;
  const auto fault = slot.box->fault_index.load();
  const auto when = static_cast<std::uint64_t>(slot.box->fault_ns.load());
  if (fault == 0 || fault > settings_.faults.size() || when == slot.fault_seen) return std::nullopt;
  slot.fault_seen = when;
  fired_.mark(fault - 1, rank_of(index));
  return fault - 1;
}

// From a worker whose black box is on another host; it waits for the answer.
void director_core::hear(std::uint32_t index, const wire::fault_struck& m) {
  auto& slot = slots_[index];
  if (slot.box != nullptr || m.fault >= settings_.faults.size()) return;
  probe<"director.outsider_struck">::hit();
  fired_.mark(m.fault, rank_of(index));
  ports_.send(*slot.who, wire::director_heartbeat{members_.generation(), fired_text()});
}

// `all` strikes at once: the first worker to reach the moment strikes itself, the director the others.
void director_core::strike_all_but(std::uint32_t index, std::size_t fault) {
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (i == index || slots_[i].pid == 0 || !slots_[i].child) continue;
    note_fault(i);
    if (fired_.on(fault, rank_of(i)) < fired_.on(fault, rank_of(index))) fired_.mark(fault, rank_of(i));
    slots_[i].struck_at = ports_.now();
    ports_.signal(slots_[i].pid, SIGKILL);
  }
}

std::optional<time_point> director_core::felt(std::uint32_t index, std::optional<std::size_t> strike) const {
  if (!strike || is_borne(settings_.faults[*strike].kind)) return std::nullopt;
  return time_from_ns(slots_[index].box->fault_ns.load());
}

// Whoever bears a strike does not fail by it, so that nobody would tell: it is read off the box. So is one
// that is over; a stopped process goes on then.
void director_core::look_for_strikes(std::uint32_t index) {
  auto& slot = slots_[index];
  if (slot.box == nullptr || slot.pid == 0 || slot.condemned) return;
  const auto fault = slot.box->fault_index.load();
  const auto struck = slot.box->fault_ns.load();
  if (fault == 0 || fault > settings_.faults.size() || struck == 0) return;
  const auto kind = settings_.faults[fault - 1].kind;
  const auto length = duration{slot.box->fault_for_ns.load()};
  const bool over = length.count() != 0 && ports_.now() >= time_from_ns(struck) + length;
  if (over || is_borne(kind)) note_fault(index);
  if (over && kind == fault_kind::stop) ports_.signal(slot.pid, SIGCONT); // harmless for one that runs
}

} // namespace troupe
