#include "tests/fuzz/mutations.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/base/counter_rng.hpp"

namespace troupe::fuzz {
namespace {

constexpr std::size_t growth_max = 64; // bytes that one change may add
constexpr std::array<std::uint64_t, 14> telling{0,
                                                1,
                                                2,
                                                0x7f,
                                                0x80,
                                                0xff,
                                                0x7fff,
                                                0xffff,
                                                0x10000,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                0x7fffffffffffffff,
                                                0xffffffffffffffff};

class mutator {
public:
  mutator(std::span<const bytes> corpus, std::string_view name, std::uint64_t number)
      : corpus_{corpus}
      , random_{number, stream_of(name)} {}

  bytes make() {
    made_ = corpus_[below(corpus_.size())];
    const auto changes = 1 + below(6);
    for (std::uint64_t i = 0; i < changes; ++i)
      change();
    return std::move(made_);
  }

private:
  std::uint64_t draw() { return random_.bits(position_++); }
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : draw() % bound; }
  std::ptrdiff_t place() { return static_cast<std::ptrdiff_t>(below(made_.size() + 1)); }

  void change() {
    switch (below(8)) {
    case 0:
    case 1:
      flip_bit();
      return;
    case 2:
      set_byte();
      return;
    case 3:
    case 4:
      set_number();
      return;
    case 5:
      take_out();
      return;
    case 6:
      repeat();
      return;
    default:
      splice();
    }
  }
  void flip_bit() {
    if (!made_.empty()) made_[below(made_.size())] ^= std::byte{1} << below(8);
  }
  void set_byte() {
    static constexpr std::string_view marks = "{}[]\":,@=-.0 \n\\";
    if (made_.empty()) return;
    const auto value = below(2) == 0 ? static_cast<std::byte>(marks[below(marks.size())])
                                     : static_cast<std::byte>(draw() & 0xffU);
    made_[below(made_.size())] = value;
  }
  // A number of 1, 2, 4 or 8 bytes where lengths and counts stand, in either order, or one off.
  void set_number() {
    const std::size_t width = std::size_t{1} << below(4);
    if (made_.size() < width) return;
    auto* at = made_.data() + below(made_.size() - width + 1);
    std::uint64_t value = telling[below(telling.size())];
    if (below(2) == 0) {
      std::uint64_t old = 0;
      std::memcpy(&old, at, width);
      value = old + 1 - 2 * below(2);
    }
    std::array<std::byte, 8> raw = std::bit_cast<std::array<std::byte, 8>>(value);
    if (below(4) == 0) std::reverse(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(width));
    std::memcpy(at, raw.data(), width);
  }
  void take_out() {
    const auto from = place();
    const auto rest = made_.size() - static_cast<std::size_t>(from);
    const auto count =
        below(4) == 0 ? rest : below(std::min<std::size_t>(rest, 16) + 1); // to the end, or a few
    made_.erase(made_.begin() + from, made_.begin() + from + static_cast<std::ptrdiff_t>(count));
  }
  void insert(std::span<const std::byte> what) {
    const auto at = place();
    made_.insert(made_.begin() + at, what.begin(), what.end());
  }
  void repeat() {
    const auto from = static_cast<std::size_t>(place());
    const auto count = below(std::min(made_.size() - from, growth_max) + 1);
    const bytes copy(made_.begin() + static_cast<std::ptrdiff_t>(from),
                     made_.begin() + static_cast<std::ptrdiff_t>(from + count));
    insert(copy);
  }
  void splice() {
    const auto& other = corpus_[below(corpus_.size())];
    const auto from = below(other.size() + 1);
    insert(std::span{other}.subspan(from, below(std::min(other.size() - from, growth_max) + 1)));
  }

  std::span<const bytes> corpus_;
  counter_rng random_;
  std::uint64_t position_{0};
  bytes made_;
};

} // namespace

bytes mutated(std::span<const bytes> corpus, std::string_view name, std::uint64_t number) {
  return mutator{corpus, name, number}.make();
}

} // namespace troupe::fuzz
