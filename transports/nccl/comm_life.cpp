#include "transports/nccl/comm_life.hpp"

#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

std::string_view to_string(life_state state) {
  constexpr std::string_view names[life_states]{"none",      "initialising", "ready",    "closing",  "held",
                                                "shrinking", "parting",      "aborting", "draining", "stuck"};
  return names[static_cast<std::size_t>(state)];
}

life_orders comm_life::begin(time_point now, generation_id generation, life_origin origin) {
  invariant(generation > newest_, "NC-1: generations begin in order");
  newest_ = generation;
  life_orders orders;
  drop_wanted(orders);
  const request what{generation, origin};
  switch (state_) {
  case life_state::none:
    start(now, what, orders);
    break;
  case life_state::ready:
    if (origin == life_origin::shrunk && has_.shrink)
      start_shrink(now, generation, orders);
    else {
      wanted_ = what;
      enter(life_state::closing, settings_.close_deadline, now);
      order(orders, life_action::poison);
      order(orders, life_action::finalize);
    }
    break;
  case life_state::held:
    begin_in_held(now, what, orders);
    break;
  case life_state::initialising:
  case life_state::shrinking:
  case life_state::parting:
    wanted_ = what;
    fail(now, {errc::aborted, "generation " + to_string(generation) + " took its place"}, orders);
    break;
  case life_state::closing:
  case life_state::aborting:
  case life_state::draining:
    wanted_ = what;
    break;
  case life_state::stuck:
    orders.push_back({life_action::poison, generation}); // nothing comes after it
    break;
  }
  return orders;
}

void comm_life::begin_in_held(time_point now, request what, life_orders& orders) {
  if (what.origin == life_origin::shrunk && has_.revoke && !quiet_) {
    wanted_ = what; // once what was revoked is quiet
  } else if (what.origin == life_origin::shrunk) {
    start_shrink(now, what.generation, orders);
  } else {
    wanted_ = what;
    abort(now, orders);
  }
}

life_orders comm_life::status(time_point now, generation_id generation, call_status said,
                              const std::string& why) {
  life_orders orders;
  if (generation != generation_ || said == call_status::under_way) return orders; // NC-1
  const bool failed = said == call_status::failed;
  switch (state_) {
  case life_state::initialising:
  case life_state::shrinking:
  case life_state::ready:
    if (failed) {
      fail(now, {errc::aborted, why}, orders);
    } else if (state_ == life_state::initialising) {
      enter(life_state::ready, {}, now);
      order(orders, life_action::announce);
    } else if (state_ == life_state::shrinking) {
      enter(life_state::parting, settings_.abort_deadline, now);
      order(orders, life_action::abort_parent);
    }
    break;
  case life_state::closing:
    if (failed) {
      abort(now, orders);
    } else {
      order(orders, life_action::destroy);
      leave(now, orders);
    }
    break;
  case life_state::held:
    if (failed) {
      abort(now, orders);
    } else if (has_.revoke) {
      quiet_ = true;
      if (wanted_) start_shrink(now, std::exchange(wanted_, {})->generation, orders);
    }
    break;
  default:
    break;
  }
  return orders;
}

life_orders comm_life::fault(time_point now, generation_id generation, error why) {
  life_orders orders;
  if (wanted_ && wanted_->generation == generation)
    drop_wanted(orders);
  else if (generation == generation_)
    fail(now, std::move(why), orders);
  return orders;
}

life_orders comm_life::close(time_point now, generation_id generation) {
  if (!may_issue(generation)) return fault(now, generation, {errc::aborted, "it was closed"});
  life_orders orders;
  enter(life_state::closing, settings_.close_deadline, now);
  order(orders, life_action::finalize);
  return orders;
}

life_orders comm_life::aborted(time_point now, bool clean) {
  life_orders orders;
  if ((state_ != life_state::aborting && state_ != life_state::parting) || drains_) return orders;
  if (!clean) {
    give_up({errc::device_failed, "NCCL could not abort its communicators"}, orders);
    return orders;
  }
  enter(state_ == life_state::aborting ? life_state::draining : state_, settings_.abort_deadline, now);
  drains_ = true;
  order(orders, life_action::drain);
  return orders;
}

life_orders comm_life::drained(time_point now, bool clean) {
  life_orders orders;
  if (!drains_) return orders;
  drains_ = false;
  if (!clean) {
    give_up({errc::device_failed, "the device reports an error after the abort: " + failure_.text}, orders);
  } else if (state_ == life_state::draining) {
    leave(now, orders);
  } else if (std::exchange(failed_parting_, false)) {
    abort(now, orders);
  } else {
    enter(life_state::ready, {}, now);
    order(orders, life_action::announce);
  }
  return orders;
}

life_orders comm_life::tick(time_point now) {
  life_orders orders;
  if (!deadline_ || now < *deadline_) return orders;
  const std::string which = "generation " + to_string(generation_);
  switch (state_) {
  case life_state::initialising:
  case life_state::shrinking:
    fail(now, {errc::aborted, which + ": not all ranks came within the deadline"}, orders);
    break;
  case life_state::closing:
  case life_state::held:
    abort(now, orders);
    break;
  case life_state::parting:
  case life_state::aborting:
    give_up({errc::device_failed, which + ": NCCL's abort did not return within its deadline"}, orders);
    break;
  case life_state::draining:
    give_up({errc::device_failed, which + ": the device did not come to rest after the abort"}, orders);
    break;
  default:
    break;
  }
  return orders;
}

bool comm_life::may_allocate() const {
  return state_ == life_state::none || state_ == life_state::initialising || state_ == life_state::ready ||
         state_ == life_state::closing;
}

bool comm_life::expects(generation_id generation) const {
  if (wanted_ && wanted_->generation == generation) return true;
  return generation == generation_ &&
         (state_ == life_state::initialising || state_ == life_state::ready ||
          state_ == life_state::shrinking || (state_ == life_state::parting && !failed_parting_));
}

bool comm_life::asks_status() const {
  return state_ == life_state::initialising || state_ == life_state::shrinking ||
         state_ == life_state::closing || (state_ == life_state::held && has_.revoke && !quiet_);
}

void comm_life::enter(life_state state, std::optional<duration> limit, time_point now) {
  state_ = state;
  deadline_.reset();
  if (limit) deadline_ = now + *limit;
}

void comm_life::start(time_point now, request what, life_orders& orders) {
  generation_ = what.generation;
  if (what.origin == life_origin::shrunk) { // there is nothing left to shrink
    failure_ = {errc::aborted, "generation " + to_string(generation_) + ": no communicator to shrink"};
    order(orders, life_action::poison);
    return;
  }
  enter(life_state::initialising, settings_.init_deadline, now);
  order(orders, life_action::init);
}

void comm_life::start_shrink(time_point now, generation_id generation, life_orders& orders) {
  if (state_ == life_state::ready) order(orders, life_action::poison); // operations of the larger one
  generation_ = generation;
  quiet_ = false;
  enter(life_state::shrinking, settings_.init_deadline, now);
  order(orders, life_action::shrink);
}

void comm_life::leave(time_point now, life_orders& orders) {
  enter(life_state::none, {}, now);
  if (wanted_) start(now, *std::exchange(wanted_, {}), orders);
}

// NC-3: first the error and the poison, then whatever touches the communicator.
void comm_life::fail(time_point now, error why, life_orders& orders) {
  switch (state_) {
  case life_state::initialising:
  case life_state::shrinking:
  case life_state::ready:
  case life_state::closing:
    failure_ = std::move(why);
    order(orders, life_action::poison);
    if (state_ == life_state::ready && settings_.hold_for_shrink && has_.shrink)
      hold(now, orders);
    else
      abort(now, orders);
    break;
  case life_state::parting:
    if (failed_parting_) break;
    failure_ = std::move(why);
    failed_parting_ = true; // its parent's abort is under way: NC-5
    order(orders, life_action::poison);
    break;
  default:
    break; // it has failed already
  }
}

void comm_life::hold(time_point now, life_orders& orders) {
  quiet_ = false;
  enter(life_state::held, settings_.hold_deadline, now);
  if (has_.revoke) order(orders, life_action::revoke);
}

void comm_life::abort(time_point now, life_orders& orders) {
  quiet_ = false;
  if (wanted_ && wanted_->origin == life_origin::shrunk) drop_wanted(orders);
  enter(life_state::aborting, settings_.abort_deadline, now);
  order(orders, life_action::abort_all);
}

void comm_life::give_up(error why, life_orders& orders) {
  failure_ = std::move(why);
  state_ = life_state::stuck;
  deadline_.reset();
  drains_ = false;
  drop_wanted(orders);
  order(orders, life_action::poison);
  order(orders, life_action::end_process);
}

void comm_life::drop_wanted(life_orders& orders) {
  if (!wanted_) return;
  orders.push_back({life_action::poison, std::exchange(wanted_, {})->generation});
}

} // namespace troupe
