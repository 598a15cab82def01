#include "runtime/host/expendable_thread.hpp"

#include <thread>
#include <utility>

namespace troupe {

void run_expendable(task work) {
  std::thread{std::move(work)}.detach();
}

} // namespace troupe
