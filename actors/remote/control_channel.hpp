// Control messages of a training job through the post office: process to process, outside the mailboxes.
#pragma once

#include "actors/remote/post_office.hpp"
#include "runtime/wire/codec.hpp"
#include "runtime/wire/control.hpp"

namespace troupe {

inline constexpr std::uint64_t control_type = wire_type_of("troupe.control");

[[nodiscard]] inline expected<void> send_control(post_office& office, incarnation_id to,
                                                 const wire::control& message) {
  return office.send_control(to, control_type, wire::encode(message));
}

} // namespace troupe
