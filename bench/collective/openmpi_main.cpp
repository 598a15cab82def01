// Open MPI's all-reduce, in place; started by mpirun, one process a rank.
#include <cstring>

#include <malloc.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "bench/collective/allreduce_program.hpp"
#include "runtime/base/buffer_pool.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

class mpi_operation final : public rank_operation {
public:
  mpi_operation(std::size_t elements, std::uint32_t ranks)
      : memory_{elements * sizeof(float)}
      , data_{memory_.as<float>().first(elements)}
      , ranks_{ranks} {}
  std::vector<std::span<float>> inputs() override { return {data_}; }
  expected<std::span<const float>> run() override {
    const auto count = static_cast<int>(data_.size());
    if (MPI_Allreduce(MPI_IN_PLACE, data_.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS)
      return error{errc::internal, "MPI_Allreduce failed"};
    return std::span<const float>{data_};
  }
  std::uint32_t summands() const override { return ranks_; }

private:
  touched_memory memory_;
  std::span<float> data_;
  std::uint32_t ranks_;
};

// The large temporaries of an all-reduce then come from memory that was touched before.
void keep_freed_memory() {
  constexpr int never = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, never);
  ::mallopt(M_TRIM_THRESHOLD, never);
  ::mallopt(M_TOP_PAD, 1 << 28);
}

// The board lies at rank 0; all ranks are on this host.
void* shared_board(std::size_t bytes, int rank, MPI_Win& window) {
  void* at = nullptr;
  MPI_Win_allocate_shared(rank == 0 ? static_cast<MPI_Aint>(bytes) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &at,
                          &window);
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win_shared_query(window, 0, &size, &unit, &at);
  if (rank == 0) std::memset(at, 0, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  return at;
}

int measure(allreduce_options options) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  options.ranks = static_cast<std::uint32_t>(ranks);
  MPI_Win window = MPI_WIN_NULL;
  rank_board board{shared_board(rank_board::bytes_for(options.ranks, options.iterations), rank, window),
                   options.ranks, options.iterations};
  int code = 0;
  {
    mpi_operation operation{options.elements(), options.ranks};
    const auto ran = run_rank(operation, board, static_cast<std::uint32_t>(rank), options);
    if (!ran) {
      code = tell_failure("allreduce_openmpi", ran.failure());
      MPI_Abort(MPI_COMM_WORLD, code);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) code = tell(options, result_of(board));
  MPI_Win_free(&window);
  return code;
}

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_allreduce_options(argc, argv, "Open MPI's all-reduce (under mpirun)");
  if (line.exit_code) return *line.exit_code;
  if (line.options.keep_memory) keep_freed_memory();
  MPI_Init(nullptr, nullptr);
  const int code = measure(line.options);
  MPI_Finalize();
  return code;
}
