// Expendable thread: for one call that may never come back, such as the abort of a library's communicators.
//
// Runs on:  a thread of its own, which nobody waits for; it ends with its work, or with the process.
#pragma once

#include "runtime/base/task.hpp"

namespace troupe {

void run_expendable(task work);

} // namespace troupe
