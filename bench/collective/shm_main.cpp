// Troupe's all-reduce between the processes of one host, as a worker composes it.
#include "bench/collective/communicator_operation.hpp"
#include "transports/shm/shm_collective.hpp"

using namespace troupe;
using namespace troupe::bench;

int main(int argc, char** argv) {
  const auto line = parse_allreduce_options(argc, argv, "Troupe's all-reduce in shared memory");
  if (line.exit_code) return *line.exit_code;
  const auto& options = line.options;
  shm_collective director;
  const collective_shape shape{generation_id{1}, options.ranks, options.shards, options.elements()};
  const auto descriptor = director.prepare(shape);
  if (!descriptor) return tell_failure("allreduce_shm", descriptor.failure());
  const auto measured =
      measure_forked(options, [&](std::uint32_t rank) -> expected<std::unique_ptr<rank_operation>> {
        auto member = shm_collective{}.connect(*descriptor, shape, rank_id{rank});
        if (!member) return member.failure();
        return std::unique_ptr<rank_operation>{new communicator_operation{std::move(*member), shape, rank}};
      });
  return measured ? tell(options, *measured) : tell_failure("allreduce_shm", measured.failure());
}
