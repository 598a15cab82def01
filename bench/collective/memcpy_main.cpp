// The bound: one or more processors copy the bytes, each its share, once.
#include <cstring>

#include "bench/collective/allreduce_program.hpp"
#include "runtime/base/buffer_pool.hpp"

namespace {

using namespace troupe;
using namespace troupe::bench;

class copy_operation final : public rank_operation {
public:
  explicit copy_operation(std::size_t elements)
      : memory_{2 * elements * sizeof(float)}
      , from_{memory_.as<float>().first(elements)}
      , to_{memory_.as<float>().subspan(elements, elements)} {}
  std::vector<std::span<float>> inputs() override { return {from_}; }
  expected<std::span<const float>> run() override {
    std::memcpy(to_.data(), from_.data(), from_.size_bytes());
    return std::span<const float>{to_};
  }
  std::uint32_t summands() const override { return 1; }

private:
  touched_memory memory_;
  std::span<float> from_, to_;
};

} // namespace

int main(int argc, char** argv) {
  const auto line = parse_allreduce_options(argc, argv, "Copies memory");
  if (line.exit_code) return *line.exit_code;
  const auto share = line.options.elements() / line.options.ranks;
  const auto measured =
      measure_forked(line.options, [&](std::uint32_t) -> expected<std::unique_ptr<rank_operation>> {
        return std::unique_ptr<rank_operation>{new copy_operation{share}};
      });
  return measured ? tell(line.options, *measured) : tell_failure("allreduce_memcpy", measured.failure());
}
