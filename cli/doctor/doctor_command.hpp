// `troupe doctor`: looks at this machine before a job does; each check a line with ok, warn or FAIL.
//
//   troupe doctor [--transport tcp|shm] [--workers N] [--device cpu|cuda:N] [--data DIR] [--json]
//
// Exit codes: 0 no FAIL, 1 there is one, 2 usage.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace CLI {
class App;
}

namespace troupe {

struct doctor_options {
  std::string transport{"tcp"};
  std::uint32_t workers{2};
  std::string device{"cpu"};
  std::string data{"/usr/share/datasets/fashion-mnist"};
  bool json{false};
  std::string probe{"path"}; // what a process that the doctor started takes part in: path, all-reduce
  int peer{-1};              // the descriptor to the doctor that started this process; -1: this is the doctor
};

[[nodiscard]] CLI::App* register_doctor(CLI::App& parent, doctor_options& into);
[[nodiscard]] int run_doctor(const doctor_options& options, std::ostream& out);

} // namespace troupe
