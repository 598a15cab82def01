#include "transports/ring/ring_collective.hpp"

#include <new>
#include <set>
#include <utility>

#include "runtime/base/text_parts.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "transports/ring/ring_member.hpp"

namespace troupe {
namespace {

constexpr std::string_view prefix = "ring:"; // generation:way:piece bytes

class ring_communicator final : public communicator {
public:
  explicit ring_communicator(std::shared_ptr<ring_member> member)
      : member_{std::move(member)} {}
  ~ring_communicator() override { member_->retire(); }
  ring_communicator(const ring_communicator&) = delete;
  ring_communicator& operator=(const ring_communicator&) = delete;

  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return member_->contribution(index);
  }
  void begin(element_range part, part_done) override { member_->begin(part); }
  void all_reduce(all_reduce_done done) override { member_->all_reduce(std::move(done)); }
  void abort() noexcept override { member_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return member_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return member_->group(); }

private:
  std::shared_ptr<ring_member> member_;
};

struct descriptor_parts {
  std::uint64_t generation{0};
  ring_way way{ring_way::alone};
  std::size_t piece_bytes{0};
};

std::optional<descriptor_parts> parse_descriptor(const std::string& descriptor) {
  if (!ring_collective::made(descriptor) || descriptor.size() > limits::ring_descriptor_bytes_max)
    return std::nullopt;
  auto rest = std::string_view{descriptor}.substr(prefix.size());
  descriptor_parts parts;
  const bool generation = read_number(next_part(rest, ':'), parts.generation);
  const auto way = parse_ring_way(next_part(rest, ':'));
  if (!generation || !way || !read_number(rest, parts.piece_bytes)) return std::nullopt;
  parts.way = *way;
  return parts;
}

// Places of transfers are numbered (ring_frame.hpp). No rank has more contributions than there are.
bool numbers_suffice(const collective_shape& shape, std::size_t piece_bytes) {
  const std::uint64_t slots = first_slots(cuts_of(shape)).back();
  return (shape.elements * sizeof(float) / piece_bytes + 1) * slots < limits::ring_places_max;
}

expected<void> check(const collective_shape& shape, ring_way way, std::size_t piece_bytes) {
  const auto wrong = [](const std::string& what) { return error{errc::bad_argument, "ring: " + what}; };
  if (shape.world == 0 || shape.world > limits::workers_max)
    return wrong("world " + std::to_string(shape.world) + " is not in 1.." +
                 std::to_string(limits::workers_max));
  if (shape.shards == 0 || shape.shards > limits::shards_max)
    return wrong(std::to_string(shape.shards) + " shards are not in 1.." +
                 std::to_string(limits::shards_max));
  const bool whole = shape.cuts.empty() || (shape.cuts.front() == 0 && shape.cuts.back() == shape.shards);
  if (!cuts_fit(shape) || !whole) return wrong("the ranks do not hold all shards, one after the other");
  std::set<incarnation_id> different;
  for (const auto& member : shape.members)
    if (member.incarnation.valid()) different.insert(member.incarnation);
  if (shape.members.size() != shape.world || different.size() != shape.world)
    return wrong("a world of " + std::to_string(shape.world) + " needs that many members; " +
                 std::to_string(different.size()) + " are known");
  if (shape.elements == 0 || shape.elements > limits::bulk_bytes_max / sizeof(float))
    return wrong(std::to_string(shape.elements) + " elements are not in 1.." +
                 std::to_string(limits::bulk_bytes_max / sizeof(float)));
  if (piece_bytes < 64 || piece_bytes % 64 != 0 || !numbers_suffice(shape, piece_bytes))
    return wrong("pieces of " + std::to_string(piece_bytes) + " bytes do not fit the shape");
  if (!possible(way, shape)) return wrong("the sum cannot go by " + std::string{to_string(way)});
  return {};
}

} // namespace

ring_collective::ring_collective(executor& loop, executor& device, ring_settings settings, executor* lane)
    : settings_{settings}
    , hub_{std::make_shared<ring_hub>(loop, device, lane == nullptr ? device : *lane)} {}

ring_collective::~ring_collective() {
  hub_->close();
}

bool ring_collective::made(const std::string& descriptor) {
  return descriptor.starts_with(prefix);
}

void ring_collective::attach(transport* network) {
  hub_->attach(network);
}

void ring_collective::set_unreachable_handler(unreachable_handler handler) {
  hub_->set_unreachable_handler(std::move(handler));
}

expected<std::string> ring_collective::prepare(const collective_shape& shape) {
  const auto way = settings_.way && shape.world > 1 ? *settings_.way : choose_way(shape);
  if (auto good = check(shape, way, settings_.piece_bytes); !good) return good.failure();
  return std::string{prefix} + to_string(shape.generation) + ":" + std::string{to_string(way)} + ":" +
         std::to_string(settings_.piece_bytes);
}

expected<std::unique_ptr<communicator>>
ring_collective::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  const auto parts = parse_descriptor(descriptor);
  if (!parts || parts->generation != shape.generation.value() || rank.value() >= shape.world)
    return error{errc::bad_argument, "'" + descriptor + "' is not for rank " + to_string(rank) +
                                         " of generation " + to_string(shape.generation)};
  if (auto good = check(shape, parts->way, parts->piece_bytes); !good) return good.failure();
  try {
    auto member = ring_member::make(hub_, shape, rank, parts->way,
                                    {.bytes = parts->piece_bytes, .loop_bytes = settings_.loop_bytes});
    hub_->loop().post([hub = hub_, member] { hub->enter(member); });
    return std::unique_ptr<communicator>{std::make_unique<ring_communicator>(std::move(member))};
  } catch (const std::bad_alloc&) {
    return error{errc::out_of_memory,
                 "ring: no memory for contributions of " + std::to_string(shape.elements) + " floats"};
  }
}

} // namespace troupe
