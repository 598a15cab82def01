// Black boxes in shared memory: the parent makes one for each child, the child writes into it, and what it
// wrote stays readable after SIGKILL.
//
// The memory is an anonymous file of fixed size (sealed, so that no child can shrink it under its parent),
// inherited as the descriptor that the environment variable TROUPE_BLACK_BOX_FD names.
#pragma once

#include <memory>

#include "runtime/base/error.hpp"
#include "runtime/host/unique_fd.hpp"
#include "runtime/seams/process.hpp"

namespace troupe {

inline constexpr const char* black_box_variable = "TROUPE_BLACK_BOX_FD";

struct shared_black_box {
  unique_fd fd; // close-on-exec; needed only until the child has started
  std::shared_ptr<black_box> box;
};

// errc::storage_failed: no memory or descriptors.
[[nodiscard]] expected<shared_black_box> make_black_box();

// For a `main`, once: the box that the parent gave this process; a private one when it gave none.
// Closes the descriptor. errc::bad_argument: the variable names no black box.
[[nodiscard]] expected<std::shared_ptr<black_box>> open_black_box_from_environment();

} // namespace troupe
