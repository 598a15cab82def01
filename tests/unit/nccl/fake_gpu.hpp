// A behavioural FAKE of GPUs and of NCCL, in virtual time: its rules, not its speed. No GPU takes part.
//
// Flow:     gpu_device (one a rank) -> [fake_gpu] -> fake_hub, where the ranks meet
// Runs on:  the test's thread. `fake_hub::moves` are what could happen next; the test chooses by its seed.
// Rules (each violation is noted with its text):
//   calls come from the rank's owner thread, an abort from an expendable one;
//   init, groups, revoke and finalize are in progress until a later look; nothing may be issued meanwhile;
//   a part of an exchange moves once both ends' streams have come to it, parts of one pair and direction in
//   order and of one size; an exchange ends with its last part, or hangs until its communicator is aborted;
//   what an aborted operation wrote is poison (NaN);
//   a second revoke or abort, finalize after revoke, destroy without finalize, any use after an abort or
//   destroy, a call that the version lacks, memory allocated or freed between a fault and its abort: invalid.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/nccl/gpu.hpp"

namespace troupe::fake {

class fake_gpu;

// One rank's end of a communicator; what a handle points at.
struct fake_comm {
  enum class phase : std::uint8_t {
    joining,
    live,
    finalizing,
    finalized,
    revoking,
    revoked,
    destroyed,
    aborted
  };
  [[nodiscard]] bool gone() const { return now >= phase::destroyed; }
  fake_gpu* of{nullptr};
  std::string meeting; // the ranks of one communicator meet under one name
  std::uint32_t world{1};
  std::uint32_t rank{0};
  phase now{phase::joining};
  std::function<void()> issuing; // handed over, not yet on the stream
  bool broken{false};            // reports a remote error
};

// One thing on a stream, in order.
struct fake_work {
  fake_comm* on{nullptr};     // null: needs nobody
  std::vector<transfer> left; // parts of an exchange that have not moved yet
  std::function<void()> run;  // of what needs nobody
};

class fake_hub {
public:
  nccl::features has{nccl::features::of(22809)};
  std::string thread; // who runs now: "owner 0", "expendable 2"
  std::vector<std::string> violations;

  // What the fake could do next by itself.
  [[nodiscard]] std::vector<std::function<void()>> moves();
  [[nodiscard]] std::vector<fake_comm*> peers(const fake_comm& of);

private:
  friend class fake_gpu;
  void violate(const std::string& text) { violations.push_back(text + " (by " + thread + ")"); }
  void add_exchange(fake_gpu& gpu, std::vector<std::function<void()>>& all);

  std::list<fake_comm> comms_;
  std::vector<fake_gpu*> gpus_;
  std::uint64_t ids_{0};
};

class fake_gpu final : public gpu {
public:
  fake_gpu(fake_hub& hub, std::uint32_t number);
  ~fake_gpu() override;
  fake_gpu(const fake_gpu&) = delete;
  fake_gpu& operator=(const fake_gpu&) = delete;

  void adopt(std::span<const std::byte> memory); // counts as this device's from now on
  void launch(std::function<void()> kernel);     // of the program's own, in order with everything else
  void break_peers();                            // this one died: the others' looks will tell
  bool dead{false};                              // takes part in nothing any more
  std::uint32_t aborts_pending{0};               // kept by the test: ordered, and not returned

  [[nodiscard]] const nccl::features& has() const override { return hub_.has; }
  [[nodiscard]] expected<nccl::unique_id> make_unique_id() override;
  [[nodiscard]] nccl_answer init(nccl::comm& into, const nccl::unique_id& id, std::uint32_t world,
                                 std::uint32_t rank) override;
  [[nodiscard]] nccl_answer shrink(nccl::comm parent, std::span<const int> without,
                                   nccl::comm& into) override;
  [[nodiscard]] nccl_answer revoke(nccl::comm which) override;
  [[nodiscard]] nccl_answer finalize(nccl::comm which) override;
  [[nodiscard]] nccl_answer destroy(nccl::comm which) override;
  [[nodiscard]] nccl_answer status(nccl::comm which) override;
  [[nodiscard]] nccl_answer abort(std::span<const nccl::comm> all) override;
  [[nodiscard]] nccl_answer exchange(nccl::comm on, std::span<const transfer> parts) override;
  [[nodiscard]] nccl_answer all_gather(nccl::comm on, const float* own, float* all,
                                       std::size_t elements) override;
  [[nodiscard]] expected<void> sum(const kernels::sum_arguments& what) override;
  [[nodiscard]] expected<void> reduce(const kernels::reduce_arguments& what) override;
  [[nodiscard]] expected<void> copy(void* to, const void* from, std::size_t bytes) override;
  [[nodiscard]] expected<void> mark() override;
  [[nodiscard]] expected<bool> reached() override;
  [[nodiscard]] expected<std::byte*> allocate(std::size_t bytes, memory_place where) override;
  void release(std::byte* memory, memory_place where) override;

private:
  friend class fake_hub;
  fake_comm& checked(nccl::comm which, const char* call);
  fake_comm& ready_to_issue(nccl::comm which, const char* call);
  void check_owner(const char* call);
  void check_calm(const char* call);
  void check_handed_over(const char* call);
  nccl_answer issue(fake_comm& one, std::vector<transfer> parts);
  void push(fake_work work) { stream_.push_back(std::move(work)); }
  void drop_aborted(fake_comm& which);
  [[nodiscard]] bool is_on_device(const void* memory) const;
  [[nodiscard]] bool is_here(const void* memory) const; // allocated or adopted

  struct block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size{0};
    memory_place where{memory_place::device};
  };
  fake_hub& hub_;
  std::string owner_;
  std::deque<fake_work> stream_;
  std::uint64_t marks_{0};
  std::uint64_t marks_reached_{0};
  std::map<std::byte*, block> memory_;
  std::vector<std::span<const std::byte>> adopted_;
};

} // namespace troupe::fake
