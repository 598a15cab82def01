#include "transports/two_level/two_level_collective.hpp"

#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/text_parts.hpp"
#include "transports/two_level/level_member.hpp"
#include "transports/two_level/limits.hpp"

namespace troupe {
namespace {

constexpr std::string_view prefix = "levels:"; // generation:hosts:descriptor of the level between

class level_communicator final : public communicator {
public:
  explicit level_communicator(std::shared_ptr<level_member> member)
      : member_{std::move(member)} {}
  ~level_communicator() override { member_->retire(); }
  level_communicator(const level_communicator&) = delete;
  level_communicator& operator=(const level_communicator&) = delete;

  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return member_->contribution(index);
  }
  void begin(element_range part, part_done done) override { member_->begin(part, std::move(done)); }
  void all_reduce(all_reduce_done done) override { member_->all_reduce(std::move(done)); }
  void abort() noexcept override { member_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return member_->arrivals(); }

private:
  std::shared_ptr<level_member> member_;
};

struct descriptor_parts {
  level_plan plan;
  std::string between;
};

std::optional<descriptor_parts> parse_descriptor(const std::string& descriptor,
                                                 const collective_shape& shape) {
  if (!two_level_collective::made(descriptor) || descriptor.size() > limits::level_descriptor_bytes_max)
    return std::nullopt;
  auto rest = std::string_view{descriptor}.substr(prefix.size());
  if (next_part(rest, ':') != to_string(shape.generation)) return std::nullopt;
  const auto hosts = parse_hosts(next_part(rest, ':'), shape.world);
  if (!hosts) return std::nullopt;
  auto plan = level_plan::make(shape.shards, *hosts);
  if (!plan || shape.group_bytes > 0 || shape.members.size() != shape.world) return std::nullopt;
  return descriptor_parts{std::move(*plan), std::string{rest}};
}

} // namespace

two_level_collective::two_level_collective(executor& loop, executor& device, collective& inside,
                                           collective& between)
    : inside_{inside}
    , between_{between}
    , hub_{std::make_shared<level_hub>(loop, device, inside)} {}

two_level_collective::~two_level_collective() {
  between_.attach(nullptr);
  hub_->close();
}

bool two_level_collective::made(const std::string& descriptor) {
  return descriptor.starts_with(prefix);
}

void two_level_collective::attach(transport* network) {
  between_.attach(nullptr);
  if (auto* share = hub_->attach(network)) between_.attach(share);
}

void two_level_collective::set_unreachable_handler(unreachable_handler handler) {
  between_.set_unreachable_handler(handler);
  hub_->set_unreachable_handler(std::move(handler));
}

expected<std::string> two_level_collective::prepare(const collective_shape& shape) {
  const auto plan = level_plan::make(shape);
  if (!plan) return error{errc::bad_argument, "two levels: " + plan.failure().text};
  return prepare(shape, *plan);
}

expected<std::string> two_level_collective::prepare(const collective_shape& shape, const level_plan& plan) {
  const auto between = between_.prepare(plan.between(shape));
  if (!between) return between.failure();
  return std::string{prefix} + to_string(shape.generation) + ":" + to_text(plan.hosts) + ":" + *between;
}

expected<std::unique_ptr<communicator>>
two_level_collective::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  auto parts = parse_descriptor(descriptor, shape);
  if (!parts || rank.value() >= shape.world)
    return error{errc::bad_argument, "'" + descriptor + "' is not for rank " + to_string(rank) +
                                         " of generation " + to_string(shape.generation)};
  try {
    auto member = std::make_shared<level_member>(hub_, shape, std::move(parts->plan), rank);
    const auto& plan = member->plan();
    if (member->leads()) {
      auto between = between_.connect(parts->between, plan.between(shape), rank_id{member->host_index()});
      if (!between) return between.failure();
      member->take_between(std::move(*between));
    }
    if (member->leads() && member->host().ranks > 1) {
      const auto within = plan.inside(shape, member->host_index());
      auto place = inside_.prepare(within);
      if (!place) return place.failure();
      auto inside = inside_.connect(*place, within, rank_id{0});
      if (!inside) return inside.failure();
      member->set_place(std::move(*place));
      member->take_inside(std::move(inside));
    }
    hub_->loop().post([hub = hub_, member] { hub->enter(member); });
    return std::unique_ptr<communicator>{std::make_unique<level_communicator>(std::move(member))};
  } catch (const std::bad_alloc&) {
    return error{errc::out_of_memory,
                 "two levels: no memory for sums of " + std::to_string(shape.elements) + " floats"};
  }
}

} // namespace troupe
