// A member of a rank group between processes that calls until its generation is ended.
#pragma once

#include <cstdint>

#include "tests/unit/collective/forked_ranks.hpp"
#include "tests/unit/collective/group_misfits.hpp"

namespace troupe::group_contract {

// A sum (its arrivals are what the director sees), a call of all, and a ring of sends; for ever. `ok` once
// they were aborted, else what was wrong. `after_each`: after each round.
template <class Work>
int call_for_ever(communicator& member, std::uint32_t rank, const known_values& known, Work after_each) {
  const auto world = known.world();
  const auto in = slice(known.in[rank], 0, known.length);
  for (;; after_each()) {
    if (const auto sum = worlds::reduce(member); !sum)
      return sum.failure().code == errc::aborted ? forked_ranks::ok : 2;
    group_worlds::player one{member, rank};
    one.call(one.group(), known.call(group_call::all_reduce), in, known.length);
    const auto next = (rank + 1) % world, before = (rank + world - 1) % world;
    const auto send = [&] { one.call(one.group(), known.call(group_call::send, next), in, 0); };
    const auto receive = [&] {
      one.call(one.group(), known.call(group_call::receive, before), {}, known.length);
    };
    rank == 0 ? (send(), receive()) : (receive(), send());
    for (const auto& call : one.records()) {
      if (call.failed_with(errc::aborted)) return forked_ranks::ok;
      if (!call.succeeded()) return 3;
    }
    if (one.records()[0].out != slice(known.reduced[0], 0, known.length)) return 4;
  }
}

} // namespace troupe::group_contract
