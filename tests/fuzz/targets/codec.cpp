// Codec: a body with every kind of field; at the version that wrote it, and at the one before (CD-1, CD-2).
#include "runtime/wire/codec.hpp"

#include <algorithm>

#include "runtime/base/time.hpp"
#include "tests/fuzz/targets.hpp"

namespace troupe::fuzz {
namespace {

enum class phase : std::uint8_t { idle, running, held };

} // namespace
} // namespace troupe::fuzz

template <>
inline constexpr std::optional<troupe::fuzz::phase> troupe::wire_last<troupe::fuzz::phase>{
    troupe::fuzz::phase::held};

namespace troupe::fuzz {
namespace {

struct part {
  std::uint32_t rank{0};
  std::optional<std::string> note;
  void fields(auto& archive) { archive(rank, note); }
};
struct tree {
  std::uint8_t leaf{0};
  std::vector<tree> branches;
  void fields(auto& archive) { archive(leaf, branches); }
};
struct everything {
  static constexpr std::string_view wire_name = "fuzz.everything";
  bool flag{false};
  phase state{phase::idle};
  float loss{0};
  double time{0};
  std::string text;
  generation_id generation;
  incarnation_id incarnation;
  duration span{0};
  time_point when;
  error cause;
  std::vector<part> members;
  std::vector<std::uint64_t> numbers;
  bytes blob;
  std::array<std::int16_t, 3> fixed{};
  std::pair<std::string, bool> both;
  std::vector<std::string> words;
  std::optional<part> chief;
  tree nested;
  void fields(auto& archive) {
    archive(flag, state, loss, time, text, generation, incarnation, span, when, cause, members, numbers, blob,
            fixed, both, words, chief, nested);
  }
};
// The same message before its last fields were appended.
struct before {
  static constexpr std::string_view wire_name = "fuzz.everything";
  bool flag{false};
  phase state{phase::idle};
  float loss{0};
  double time{0};
  std::string text;
  generation_id generation;
  void fields(auto& archive) { archive(flag, state, loss, time, text, generation); }
};

template <class T>
bytes encoded(const T& value, std::size_t room_bytes) {
  bytes room(room_bytes);
  const auto made = encode_body(value, std::span{room});
  require(made.has_value(), "CD-1: what was decoded encodes");
  return bytes_of(*made);
}

void run(input given) {
  const auto copy = bytes_of(given);
  const auto old = decode_body<before>(copy);
  const auto read = decode_body<everything>(copy);
  if (!read) {
    require(read.failure().code == errc::corrupt, "CD-2: malformed is corrupt");
    return;
  }
  require(old && old->text == read->text && old->generation == read->generation,
          "CD-1: what the later version reads, the earlier one reads alike");
  // Left out fields are written out the next time: more room than was read from.
  const auto first = encoded(*read, copy.size() * 64 + 4096);
  const auto again = decode_body<everything>(first);
  require(again && encoded(*again, first.size()) == first, "CD-1: decode(encode(x)) is x");
}

everything sample() {
  everything e;
  e.flag = true;
  e.state = phase::held;
  e.loss = 0.5F;
  e.text = "text";
  e.generation = generation_id{7};
  e.incarnation = {1, 2};
  e.span = std::chrono::milliseconds{250};
  e.cause = {errc::bad_data, "label 12"};
  e.members = {{1, "one"}, {2, std::nullopt}};
  e.numbers = {1, 2, 3};
  e.blob = bytes_of("blob");
  e.fixed = {-1, 0, 1};
  e.both = {"both", true};
  e.words = {"a", "", "c"};
  e.chief = part{9, "nine"};
  e.nested.branches.resize(2);
  e.nested.branches[1].branches.resize(1);
  return e;
}

std::vector<bytes> seeds() {
  return {encoded(everything{}, 4096), encoded(sample(), 4096), encoded(before{true, phase::running}, 4096)};
}

} // namespace

const target codec_target{"codec", run, seeds, 6000};

} // namespace troupe::fuzz
