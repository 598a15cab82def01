// Messages that the remote room itself hands to actors, and what makes a type a message.
//
// A type with a `wire_name` (runtime/wire/codec.hpp) may be sent between actors, in this process and, once
// added to the codec table, to other processes. CAF never serialises it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>

#include "runtime/base/error.hpp"

namespace troupe {

template <class T>
concept named_message = requires {
  { T::wire_name } -> std::convertible_to<std::string_view>;
};

// A body whose type has no codec here; sending one forwards the bytes as they are.
struct wire_message {
  static constexpr std::string_view wire_name = "troupe.wire_message";
  std::uint64_t type{0};
  std::shared_ptr<const std::vector<std::byte>> bytes;
};

// Comes back to the sender of a message that could not be delivered. Requests get the error as their answer
// instead. `cause.code`: never_existed, actor_stopped, actor_failed, path_lost, too_large, stale_generation,
// no_credit, corrupt, bad_argument (no codec for the type).
struct undelivered {
  static constexpr std::string_view wire_name = "troupe.undelivered";
  std::uint64_t type{0}; // of the message that came back
  error cause;
};

// To whoever asked by post_office::when_ready: the edge has credit again (or has ended: sending says why).
struct edge_ready {
  static constexpr std::string_view wire_name = "troupe.edge_ready";
  caf::actor edge;
};

} // namespace troupe

template <troupe::named_message T>
struct caf::allowed_unsafe_message_type<T> : std::true_type {};
