// Events of UCX's sockets, one at a time.
//
// UCX's tcp hands one endpoint "readable" and then "writable". Where the endpoint was closed on our side in
// the middle of a send, and what is read is the peer's end of it, the first call frees the endpoint and the
// second one uses it: the process crashes, some three times in a hundred cuts in the middle of bulk (1.13.1,
// and what is newest reads the same). Here "writable" comes from a second look at the sockets, in which a
// freed endpoint is no more.
//
// libuct asks libucs for events by this function's name; the program's own definition comes first. In a
// program that loads us as a shared library it does not, unless that is preloaded: events_apart() tells.
#include "transports/ucx/event_order.hpp"

#include <dlfcn.h>
#include <ucs/sys/event_set.h>

#include "runtime/base/invariant.hpp"

namespace {

constexpr ucs_event_set_types_t writable = UCS_EVENT_SET_EVWRITE;

struct look {
  ucs_event_set_handler_t handler;
  void* argument;
  bool second{false};
  bool both{false}; // an endpoint of the first look is writable as well
};

void one_at_a_time(void* endpoint, ucs_event_set_types_t events, void* argument) {
  auto& now = *static_cast<look*>(argument);
  const auto others = static_cast<ucs_event_set_types_t>(events & ~writable);
  now.both = now.both || (others != 0 && others != events);
  const auto told = now.second    ? static_cast<ucs_event_set_types_t>(events & writable)
                    : others != 0 ? others
                                  : events;
  if (told != 0) now.handler(endpoint, told, now.argument);
}

} // namespace

extern "C" __attribute__((visibility("default"))) ucs_status_t
ucs_event_set_wait(ucs_sys_event_set_t* set, unsigned* count, int timeout_ms, ucs_event_set_handler_t handler,
                   void* argument) {
  static const auto wait =
      reinterpret_cast<decltype(&ucs_event_set_wait)>(::dlsym(RTLD_NEXT, "ucs_event_set_wait"));
  troupe::invariant(wait != nullptr, "libucs has ucs_event_set_wait");
  look now{handler, argument};
  auto again = *count;
  const auto status = wait(set, count, timeout_ms, &one_at_a_time, &now);
  if (status != UCS_OK || !now.both) return status;
  now.second = true;
  return wait(set, &again, 0, &one_at_a_time, &now);
}

namespace troupe {

bool events_apart() {
  return ::dlsym(RTLD_DEFAULT, "ucs_event_set_wait") == reinterpret_cast<void*>(&ucs_event_set_wait);
}

} // namespace troupe
