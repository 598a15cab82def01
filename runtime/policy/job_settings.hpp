// Job settings: everything that a run can be told, as one plain value.
//
// In:       command line (cli/options), or a program's own defaults.
// Out:      validated settings; the director hands them to workers as text (`encode`, `decode`).
// Fails:    errc::bad_argument, one line: "--option VALUE: what is wrong; accepted: ...".
// Invariants:
//   JS-1    settings that `validate` accepts survive encode and decode unchanged.
//   JS-2    text that is damaged, or of a newer form, is refused with errc::corrupt or errc::wrong_version.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/policy/fault_plan.hpp"
#include "runtime/policy/timeouts.hpp"
#include "runtime/seams/rank_group.hpp"

namespace troupe {

struct resume_choice {
  enum class kind : std::uint8_t {
    newest_verified, // --resume auto: the newest version that verifies, or a fresh start
    nothing,         // --resume none
    version,         // --resume STEP: that version or none at all
  };
  kind what{kind::newest_verified};
  step_id step{};
  bool operator==(const resume_choice&) const = default;
};

// The N of "cuda:N"; nothing for other devices.
[[nodiscard]] std::optional<std::uint32_t> gpu_of(std::string_view device);

struct job_settings {
  // Workers
  std::uint32_t workers{2};
  std::uint32_t workers_min{1};
  std::uint32_t workers_max{0}; // 0: no bound but the number of shards
  std::uint32_t external{0};    // of `workers`, how many join from outside (--join) instead of being started
  std::string device{"auto"};   // cuda:N: sums on GPUs, of a director's first worker on N, the next on N + 1
  std::string transport{"tcp"}; // between processes: tcp, or shm (with the memory of a host)
  std::string collective{"auto"}; // how gradients are summed: auto, shm (one host), ring (over the network)
  std::string network{"lo"};      // the device of this process that carries messages
  duration spin{0};               // how long each event loop looks for messages before it sleeps

  // Length and batch
  std::optional<std::uint64_t> steps{};
  std::optional<std::uint64_t> epochs{}; // neither: one epoch
  std::uint32_t global_batch{128};
  std::uint32_t shards{8};
  std::uint32_t accumulate{1}; // global batches whose gradients are summed in one step
  std::uint64_t seed{1};
  std::string wire{"float32"};     // what gradients are rounded to on their way through a sum
  double top_k{0};                 // of each shard's gradient, the part summed at once; 0: all of it
  std::uint64_t bucket{4U << 20U}; // bytes of gradients summed while backward goes on; 0: none are

  // Checkpoints
  std::string checkpoint_dir{}; // empty: none
  std::uint64_t checkpoint_every{100};
  std::uint32_t keep{3};
  resume_choice resume{};

  // Failures
  duration detect_after{detect_after_default};
  fault_plan faults{};

  // Output
  std::string events{};
  std::string summary{};
  std::string flight{};  // directory of the flight recorder's dumps, empty: none are written
  std::string metrics{}; // HOST:PORT, empty: off
  bool quiet{false};

  // Several hosts
  std::string listen{"127.0.0.1:0"};
  std::string join{};
  std::string token_file{};
  std::string tls_cert{}; // with tls_key: a director speaks TLS and shows it, a joiner shows it when asked
  std::string tls_key{};
  std::string tls_ca{}; // a joiner speaks TLS and verifies the director by it, a director its joiners

  // A program's own options, by name without dashes
  std::map<std::string, std::string> extra{};

  bool operator==(const job_settings&) const = default;

  [[nodiscard]] expected<void> validate() const;
  [[nodiscard]] std::uint32_t samples_per_shard() const { return global_batch / shards; }
  [[nodiscard]] element_type wire_type() const; // of valid settings
  [[nodiscard]] std::optional<std::uint32_t> gpu() const { return gpu_of(device); }
  // Most workers that can ever be members.
  [[nodiscard]] std::uint32_t workers_limit() const { return workers_max == 0 ? shards : workers_max; }
};

[[nodiscard]] std::string to_text(const resume_choice& choice); // as --resume takes it
[[nodiscard]] std::optional<resume_choice> parse_resume(std::string_view text);
[[nodiscard]] std::string encode(const job_settings& settings);
[[nodiscard]] expected<job_settings> decode_job_settings(std::string_view text);

} // namespace troupe
