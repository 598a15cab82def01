// Rendezvous seam: how processes find each other before the transport connects them.
//
// Both sides prove that they hold the job token (challenge and response) before anything else is read.
// Runs on the event loop; every exchange has a deadline. A refusal says why (errc::refused, wrong_version).
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/base/task.hpp"
#include "runtime/base/time.hpp"
#include "runtime/seams/path_secret.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

// What a process that wants to be a member presents.
struct join_offer {
  incarnation_id incarnation;
  std::int64_t pid{0};
  std::string host;             // host name, for reports
  std::string machine;          // equal for processes that can share memory; compared, never read
  std::string program;          // the graph's name; another graph is refused
  std::string transport{"tcp"}; // as --transport takes it
  std::string device{"cpu"};    // as --device takes it; sums are on GPUs for all members, or for none
  std::int64_t slot{-1};        // launch slot that the director gave its child; -1: joined from outside
  peer_address address;
};

struct join_answer {
  job_id job;
  incarnation_id director;
  peer_address address;
  std::string settings; // the job's settings, opaque here, at most limits::envelope_bytes_max
  path_secret secret; // for the transport; each side's rendezvous knows it, and whoever decides leaves it out
};

class rendezvous_server {
public:
  using admit = inline_function<expected<join_answer>(const join_offer&), 64>;
  virtual ~rendezvous_server() = default;
  virtual expected<void> start(admit decide) = 0;         // errc::bad_argument: address in use, names it
  [[nodiscard]] virtual std::string endpoint() const = 0; // "127.0.0.1:41234", once started
  // What whoever joins `job` here gets as `join_answer::secret`.
  [[nodiscard]] virtual path_secret secret_of(job_id job) const = 0;
  virtual void stop() = 0;
};

class rendezvous_client {
public:
  using joined = inline_function<void(expected<join_answer>), 64>;
  virtual ~rendezvous_client() = default;
  // Retries connecting until `deadline` has passed; calls `done` exactly once.
  virtual void join(const std::string& endpoint, const join_offer& offer, duration deadline, joined done) = 0;
};

} // namespace troupe
