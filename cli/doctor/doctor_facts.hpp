// Doctor facts: what was found on this machine, before anyone judges it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::doctor {

// Two processes of the tool exchanged messages over the transport, as a job's would.
struct path_facts {
  std::vector<std::string> lanes; // "tcp/lo"
  double half_rtt_us{0};          // 8 B, median
  double bytes_per_s{0};          // 1 MiB transfers
};

// Processes of the tool summed known values in shared memory, as a job's ranks do.
enum class reduce_trouble : std::uint8_t { none, wrong_value, memory, late, other };

struct pair_facts {
  std::uint32_t one{0}, other{0};
  double bytes_per_s{0}; // of all-reduces between the two: bytes of the sum / time
};

struct reduce_facts {
  std::uint32_t workers{0};
  std::size_t bytes{0}; // of a sum
  std::vector<pair_facts> pairs{};
  reduce_trouble trouble{reduce_trouble::other};
  std::string failure{}; // what was told; where there is trouble
};

// What `--device cuda:N` would find.
struct gpu_facts {
  std::string asked{};   // "cuda:0"; empty: nothing is asked of GPUs
  std::string found{};   // empty: something is missing
  std::string missing{}; // "what; remedy"
};

// A library whose header was read when this program was built, and that is loaded now.
struct library_facts {
  std::string name;
  std::string built;
  std::string loaded; // empty: it does not say
};

struct doctor_facts {
  std::string transport{"tcp"};           // asked for, as --transport takes it
  std::vector<std::string> ucx_resources; // "tcp/lo", "sysv/memory": what UCX could use
  bool loopback_up{false};
  std::optional<path_facts> path;
  std::string path_failure; // why there is no path
  reduce_facts reduce;
  gpu_facts gpu;
  std::map<std::string, std::string> environment;   // of launchers and of UCX
  std::optional<std::uint64_t> shm_total, shm_free; // /dev/shm, bytes; nothing: not there
  std::uint64_t open_files_soft{0}, open_files_hard{0};
  std::uint64_t memory_total{0}, memory_available{0}; // bytes
  int overcommit{0};                                  // vm.overcommit_memory
  std::string dataset_directory;
  std::vector<std::string> dataset_missing; // files
  std::vector<library_facts> libraries;
};

} // namespace troupe::doctor
