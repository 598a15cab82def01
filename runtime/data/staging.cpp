#include "runtime/data/staging.hpp"

#include <new>
#include <utility>

#include "runtime/base/buffer_pool.hpp"

namespace troupe {
namespace {

class memory_staged final : public staged_memory {
public:
  memory_staged(touched_memory memory, std::string locator)
      : memory_{std::move(memory)}
      , locator_{std::move(locator)} {}
  [[nodiscard]] std::span<const std::byte> bytes() const override { return memory_.bytes(); }
  [[nodiscard]] std::string locator() const override { return locator_; }

private:
  touched_memory memory_;
  std::string locator_;
};

class memory_draft final : public staging_draft {
public:
  memory_draft(std::shared_ptr<memory_staging::registry> registry, std::size_t bytes)
      : registry_{std::move(registry)}
      , memory_{bytes} {}
  [[nodiscard]] std::span<std::byte> bytes() override { return memory_.bytes(); }
  [[nodiscard]] expected<std::shared_ptr<const staged_memory>> seal() override {
    const std::lock_guard lock{registry_->mutex};
    auto locator = "memory:" + std::to_string(registry_->next++);
    std::shared_ptr<const staged_memory> result =
        std::make_shared<memory_staged>(std::move(memory_), locator);
    registry_->sealed.insert_or_assign(std::move(locator), result);
    return result;
  }

private:
  std::shared_ptr<memory_staging::registry> registry_;
  touched_memory memory_;
};

} // namespace

memory_staging::memory_staging()
    : registry_{std::make_shared<registry>()} {}

expected<std::unique_ptr<staging_draft>> memory_staging::begin(const std::string& name, std::size_t bytes) {
  try {
    return std::unique_ptr<staging_draft>{std::make_unique<memory_draft>(registry_, bytes)};
  } catch (const std::bad_alloc&) {
    return error{errc::storage_full, "dataset '" + name + "': no " + std::to_string(bytes) +
                                         " bytes of memory to decode it into"};
  }
}

expected<std::shared_ptr<const staged_memory>> memory_staging::open(const std::string& locator) {
  const std::lock_guard lock{registry_->mutex};
  const auto found = registry_->sealed.find(locator);
  if (found == registry_->sealed.end())
    return error{errc::bad_argument, "staged dataset '" + locator + "': accepted is a locator memory:N"};
  if (auto memory = found->second.lock()) return memory;
  return error{errc::not_found, "staged dataset '" + locator + "': its owner has let it go"};
}

} // namespace troupe
