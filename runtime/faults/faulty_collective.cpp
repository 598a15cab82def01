#include "runtime/faults/faulty_collective.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe {
namespace {

class faulty_communicator final : public communicator {
public:
  faulty_communicator(std::unique_ptr<communicator> inner, const collective_surroundings& around)
      : inner_{std::move(inner)}
      , around_{around} {}

  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    const auto place = inner_->contribution(index);
    if (index == 0) own_ = place;
    return place;
  }
  void begin(element_range part, part_done done) override { inner_->begin(part, std::move(done)); }
  void all_reduce(all_reduce_done done) override {
    const auto now = around_.switches.now();
    const auto& slow = around_.switches.slow_worker;
    if (slow.on(now)) around_.device.stretch(slow.factor());
    if (!own_.empty() && around_.switches.nan.take()) own_[0] = std::numeric_limits<float>::quiet_NaN();
    // As behind a wrong `if`: the own part passes for the sum, under the number of the newest sum it was in.
    if (around_.switches.skip.take()) return done(reduction{own_, newest_});
    waiting_ = std::move(done);
    around_.switches.hang.on(now) ? hang(now) : enter();
  }
  void abort() noexcept override {
    inner_->abort();
    around_.device.post([alive = std::weak_ptr{alive_}] { wake(alive); });
  }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_->arrivals(); }
  [[nodiscard]] rank_group* group() override { return inner_->group(); }

private:
  using self = std::weak_ptr<faulty_communicator*>;

  void enter() {
    hanging_ = false;
    inner_->all_reduce([this](expected<reduction> result) {
      if (result) newest_ = result->number;
      std::exchange(waiting_, {})(std::move(result));
    });
  }
  void hang(time_point now) {
    hanging_ = true;
    const auto until = around_.switches.hang.until();
    if (until == time_point::max()) return; // until the abort
    around_.loop.post([around = around_, wait = until - now, alive = self{alive_}] {
      around.clock.call_after(wait,
                              [device = &around.device, alive] { device->post([alive] { wake(alive); }); });
    });
  }
  // On the device. Whoever does not hang any more is left alone.
  static void wake(const self& alive) {
    if (const auto here = alive.lock(); here && (*here)->hanging_) (*here)->enter();
  }

  std::unique_ptr<communicator> inner_;
  collective_surroundings around_;
  std::span<float> own_; // the first part that this rank contributes; empty: none
  all_reduce_done waiting_;
  bool hanging_{false};
  std::uint64_t newest_{0};
  std::shared_ptr<faulty_communicator*> alive_{std::make_shared<faulty_communicator*>(this)};
};

} // namespace

expected<std::unique_ptr<communicator>>
faulty_collective::connect(const std::string& descriptor, const collective_shape& shape, rank_id rank) {
  auto made = inner_.connect(descriptor, shape, rank);
  if (!made) return made.failure();
  return std::unique_ptr<communicator>{std::make_unique<faulty_communicator>(std::move(*made), around_)};
}

} // namespace troupe
