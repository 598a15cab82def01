// Loaded GPU: one device through the loaded libraries.
//
// Owns:     a stream and an event; copies of the tables.
// Runs on:  `open` binds it to the calling thread, its owner; every call asserts it (NC-8) but `abort` and
//           `make_unique_id`.
// Fails:    as gpu.hpp says; texts name the call, what it said and what NCCL says of its last error.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "transports/nccl/gpu.hpp"
#include "transports/nccl/gpu_libraries.hpp"

namespace troupe {

class loaded_gpu final : public gpu {
public:
  explicit loaded_gpu(const gpu_libraries& libraries)
      : cuda_{libraries.cuda}
      , nccl_{libraries.nccl}
      , kernels_{libraries.kernels}
      , has_{libraries.has} {}

  // Owner thread, before any other call but make_unique_id. errc::device_failed.
  [[nodiscard]] expected<void> open(std::uint32_t index);
  void close(); // owner thread; nothing may be under way

  [[nodiscard]] const nccl::features& has() const override { return has_; }
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

  // For kernels of one's own, in order with everything else. Owner thread.
  [[nodiscard]] CUstream_st* stream() const { return stream_; }
  [[nodiscard]] const kernels::api& kernel_calls() const { return kernels_; }

private:
  void check_owner() const;
  [[nodiscard]] nccl_answer answer(const char* call, nccl::result said, nccl::comm of) const;
  [[nodiscard]] expected<void> checked(const char* call, cuda::status said,
                                       errc code = errc::device_failed) const;

  cuda::api cuda_;
  nccl::api nccl_;
  kernels::api kernels_;
  nccl::features has_;
  std::thread::id owner_;
  cuda::stream stream_{nullptr};
  cuda::event event_{nullptr};
};

} // namespace troupe
