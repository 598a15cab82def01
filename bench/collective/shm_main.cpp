// Troupe's all-reduce between the processes of one host, as a worker composes it.
#include "bench/collective/allreduce_program.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "transports/shm/shm_collective.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

class shm_operation final : public rank_operation {
public:
  shm_operation(std::unique_ptr<communicator> member, const collective_shape& shape, std::uint32_t rank)
      : member_{std::move(member)}
      , summands_{first_slots(shape.shards, shape.world).back()} {
    const auto range = shard_range(shape.shards, shape.world, rank);
    owned_ = owned_nodes(shape.shards, range.first, range.count).size();
  }
  std::vector<std::span<float>> inputs() override {
    std::vector<std::span<float>> out;
    for (std::size_t i = 0; i < owned_; ++i)
      out.push_back(member_->contribution(i));
    return out;
  }
  expected<std::span<const float>> run() override {
    expected<std::span<const float>> out{error{errc::internal, "no answer"}};
    member_->all_reduce([&out](const expected<reduction>& done) {
      if (done)
        out = done->sum;
      else
        out = done.failure();
    });
    return out;
  }
  std::uint32_t summands() const override { return summands_; }

private:
  std::unique_ptr<communicator> member_;
  std::uint32_t summands_;
  std::size_t owned_{0};
};

} // namespace

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
        return std::unique_ptr<rank_operation>{new shm_operation{std::move(*member), shape, rank}};
      });
  return measured ? tell(options, *measured) : tell_failure("allreduce_shm", measured.failure());
}
