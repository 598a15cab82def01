#include "transports/nccl/loaded_gpu.hpp"

#include <cstring>

#include "runtime/base/invariant.hpp"

namespace troupe {

void loaded_gpu::check_owner() const {
  invariant(std::this_thread::get_id() == owner_, "NC-8: one thread issues every call of a device");
}

nccl_answer loaded_gpu::answer(const char* call, nccl::result said, nccl::comm of) const {
  if (said == nccl::result::success || said == nccl::result::in_progress) return {said, {}};
  std::string why = std::string{call} + ": " + std::string{nccl::text_of(said, has_)};
  const char* const last = nccl_.get_last_error(of);
  if (last != nullptr && *last != '\0') why += std::string{" ("} + last + ")";
  return {said, std::move(why)};
}

expected<void> loaded_gpu::checked(const char* call, cuda::status said, errc code) const {
  if (said == cuda::status::success) return {};
  return error{code, std::string{call} + ": " + cuda_.get_error_string(said)};
}

expected<void> loaded_gpu::open(std::uint32_t index) {
  owner_ = std::this_thread::get_id();
  auto done = checked("cudaSetDevice", cuda_.set_device(static_cast<int>(index)));
  if (done)
    done = checked("cudaStreamCreateWithFlags", cuda_.stream_create(&stream_, cuda::stream_non_blocking));
  if (done)
    done = checked("cudaEventCreateWithFlags", cuda_.event_create(&event_, cuda::event_disable_timing));
  return done;
}

void loaded_gpu::close() {
  check_owner();
  if (event_ != nullptr) (void)cuda_.event_destroy(event_);
  if (stream_ != nullptr) (void)cuda_.stream_destroy(stream_);
  event_ = nullptr;
  stream_ = nullptr;
}

expected<nccl::unique_id> loaded_gpu::make_unique_id() {
  nccl::unique_id id{};
  const auto made = answer("ncclGetUniqueId", nccl_.get_unique_id(&id), nullptr);
  if (!made.done()) return error{errc::device_failed, made.why};
  return id;
}

nccl_answer loaded_gpu::init(nccl::comm& into, const nccl::unique_id& id, std::uint32_t world,
                             std::uint32_t rank) {
  check_owner();
  nccl::config settings;
  return answer("ncclCommInitRankConfig",
                nccl_.comm_init(&into, static_cast<int>(world), id, static_cast<int>(rank), &settings), into);
}

nccl_answer loaded_gpu::shrink(nccl::comm parent, std::span<const int> without, nccl::comm& into) {
  check_owner();
  invariant(has_.shrink, "NC-9: shrink only where the library has it");
  std::vector<int> gone{without.begin(), without.end()};
  nccl::config settings;
  return answer("ncclCommShrink",
                nccl_.comm_shrink(parent, gone.data(), static_cast<int>(gone.size()), &into, &settings,
                                  nccl::shrink_abort),
                parent);
}

nccl_answer loaded_gpu::revoke(nccl::comm which) {
  check_owner();
  invariant(has_.revoke, "NC-9: revoke only where the library has it");
  return answer("ncclCommRevoke", nccl_.comm_revoke(which, 0), which);
}

nccl_answer loaded_gpu::finalize(nccl::comm which) {
  check_owner();
  return answer("ncclCommFinalize", nccl_.comm_finalize(which), which);
}

nccl_answer loaded_gpu::destroy(nccl::comm which) {
  check_owner();
  return answer("ncclCommDestroy", nccl_.comm_destroy(which), nullptr);
}

nccl_answer loaded_gpu::status(nccl::comm which) {
  check_owner();
  auto said = nccl::result::success;
  const auto asked = answer("ncclCommGetAsyncError", nccl_.comm_get_async_error(which, &said), which);
  return asked.done() ? answer("NCCL", said, which) : asked;
}

nccl_answer loaded_gpu::abort(std::span<const nccl::comm> all) {
  nccl_answer first;
  const auto note = [&](const char* call, nccl::result said) {
    if (!first.failed()) first = answer(call, said, nullptr);
  };
  note("ncclGroupStart", nccl_.group_start());
  for (const auto one : all)
    note("ncclCommAbort", nccl_.comm_abort(one));
  note("ncclGroupEnd", nccl_.group_end());
  return first;
}

nccl_answer loaded_gpu::exchange(nccl::comm on, std::span<const transfer> parts) {
  check_owner();
  if (auto begun = answer("ncclGroupStart", nccl_.group_start(), on); begun.failed()) return begun;
  nccl_answer first;
  for (const auto& part : parts) {
    const auto peer = static_cast<int>(part.peer);
    const auto issued =
        part.to == nullptr
            ? answer("ncclSend", nccl_.send(part.from, part.bytes, nccl::data_type::bytes, peer, on, stream_),
                     on)
            : answer("ncclRecv", nccl_.recv(part.to, part.bytes, nccl::data_type::bytes, peer, on, stream_),
                     on);
    if (issued.failed() && !first.failed()) first = issued;
  }
  const auto ended = answer("ncclGroupEnd", nccl_.group_end(), on); // also after a failure
  return first.failed() ? first : ended;
}

nccl_answer loaded_gpu::all_gather(nccl::comm on, const float* own, float* all, std::size_t elements) {
  check_owner();
  return answer("ncclAllGather", nccl_.all_gather(own, all, elements, nccl::data_type::float32, on, stream_),
                on);
}

expected<void> loaded_gpu::sum(const kernels::sum_arguments& what) {
  check_owner();
  return checked("the ordered sum", static_cast<cuda::status>(kernels_.sum(&what, stream_)));
}

expected<void> loaded_gpu::reduce(const kernels::reduce_arguments& what) {
  check_owner();
  return checked("the ordered reduction", static_cast<cuda::status>(kernels_.reduce(&what, stream_)));
}

expected<void> loaded_gpu::copy(void* to, const void* from, std::size_t bytes) {
  check_owner();
  return checked("cudaMemcpyAsync",
                 cuda_.memcpy_async(to, from, bytes, cuda::copy_kind::by_address, stream_));
}

expected<void> loaded_gpu::mark() {
  check_owner();
  return checked("cudaEventRecord", cuda_.event_record(event_, stream_));
}

expected<bool> loaded_gpu::reached() {
  check_owner();
  const auto said = cuda_.event_query(event_);
  if (said == cuda::status::not_ready) return false;
  if (auto good = checked("cudaEventQuery", said); !good) return good.failure();
  return true;
}

expected<std::byte*> loaded_gpu::allocate(std::size_t bytes, memory_place where) {
  check_owner();
  void* memory = nullptr;
  if (where != memory_place::device) {
    if (auto made = checked("cudaHostAlloc", cuda_.host_allocate(&memory, bytes, 0), errc::out_of_memory);
        !made)
      return made.failure();
    std::memset(memory, 0, bytes);
    return static_cast<std::byte*>(memory);
  }
  if (auto made = checked("cudaMalloc", cuda_.allocate(&memory, bytes), errc::out_of_memory); !made)
    return made.failure();
  if (auto cleared = checked("cudaMemsetAsync", cuda_.memset_async(memory, 0, bytes, stream_)); !cleared)
    return cleared.failure();
  return static_cast<std::byte*>(memory);
}

void loaded_gpu::release(std::byte* memory, memory_place where) {
  check_owner();
  (void)(where == memory_place::device ? cuda_.release(memory) : cuda_.host_release(memory));
}

} // namespace troupe
