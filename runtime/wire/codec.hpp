// Codec: how a message type becomes the body of an envelope, and back.
//
// A type takes part by naming itself and listing its fields once, for both directions:
//
//   struct hold {
//     static constexpr std::string_view wire_name = "troupe.hold";
//     generation_id generation;
//     std::string cause;
//     void fields(auto& archive) { archive(generation, cause); }
//   };
//
// or by specialising `codec<T>`, where another form (Cap'n Proto) serves it better. The form here:
// little-endian numbers of fixed width, floats bit for bit, lengths as 32 bits; no padding, no alignment.
// A struct with `fields` opens with the length of what follows of it, so that it can grow: fields are only
// ever appended. A reader that knows more leaves the rest as `T{}` has it; one that knows less skips.
// Invariants:
//   CD-1    decode(encode(x)) is x, NaN included; across versions, the fields that both know are equal.
//   CD-2    decoding reads inside its span (a struct's fields inside that struct) only, never allocates more
//           than the span could hold elements, and fails (errc::corrupt) on what ends inside a field, is too
//           long, nested too deeply, or no valid value.
// Why:      docs/design/0026-growing-messages.md
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/counter_rng.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/ids.hpp"

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the wire form is the memory form");

[[nodiscard]] constexpr std::uint64_t wire_type_of(std::string_view name) {
  return stream_of(name);
}

// Specialise to have an enum's value checked: the last valid value; the first one is 0.
template <class Enum>
inline constexpr std::optional<Enum> wire_last{};

template <class T>
concept wire_number = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

// Structs inside of structs, the outermost included: what a hostile body could cost of stack.
inline constexpr unsigned wire_nesting_max = 32;

// Writes to the caller's buffer; remembers when it did not fit.
class byte_writer {
public:
  explicit byte_writer(std::span<std::byte> into)
      : into_{into} {}

  template <class... Ts>
  void operator()(const Ts&... values) {
    (write(values), ...);
  }
  // Room for `count` bytes in another form; empty when it does not fit.
  [[nodiscard]] std::span<std::byte> reserve(std::size_t count) {
    if (count > into_.size() - used_) {
      full_ = true;
      return {};
    }
    used_ += count;
    return into_.subspan(used_ - count, count);
  }
  [[nodiscard]] bool full() const { return full_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return into_.first(used_); }

private:
  void raw(const void* from, std::size_t count) {
    const auto room = reserve(count);
    if (room.size() == count && count != 0) std::memcpy(room.data(), from, count);
  }
  void length(std::size_t count) {
    if (count > UINT32_MAX) full_ = true;
    write(static_cast<std::uint32_t>(count));
  }
  template <wire_number T>
  void write(T value) {
    raw(&value, sizeof value);
  }
  void write(bool value) { write(static_cast<std::uint8_t>(value ? 1 : 0)); }
  void write(std::string_view text) {
    length(text.size());
    raw(text.data(), text.size());
  }
  void write(const std::string& text) { write(std::string_view{text}); }
  template <class T>
  requires std::is_enum_v<T>
  void write(T value) { write(static_cast<std::underlying_type_t<T>>(value)); }
  template <class Tag, class Rep>
  void write(const strong_number<Tag, Rep>& number) {
    write(number.value());
  }
  template <class Tag>
  void write(const random_id<Tag>& id) {
    write(id.high());
    write(id.low());
  }
  template <class Rep, class Period>
  void write(const std::chrono::duration<Rep, Period>& span) {
    write(span.count());
  }
  template <class Clock, class Span>
  void write(const std::chrono::time_point<Clock, Span>& when) {
    write(when.time_since_epoch());
  }
  void write(const error& failure) {
    write(failure.code);
    write(failure.text);
  }
  template <class A, class B>
  void write(const std::pair<A, B>& both) {
    write(both.first);
    write(both.second);
  }
  template <class T>
  void write(const std::optional<T>& value) {
    write(value.has_value());
    if (value) write(*value);
  }
  template <class T, std::size_t N>
  void write(const std::array<T, N>& values) {
    if constexpr (wire_number<T> || std::same_as<T, std::byte>)
      raw(values.data(), sizeof values);
    else
      for (const auto& value : values)
        write(value);
  }
  template <class T>
  void write(const std::vector<T>& values) {
    length(values.size());
    if constexpr (wire_number<T> || std::same_as<T, std::byte>)
      raw(values.data(), values.size() * sizeof(T));
    else
      for (const auto& value : values)
        write(value);
  }
  template <class T>
  requires requires(T& value, byte_writer& archive) { value.fields(archive); }
  void write(const T& value) {
    if (nesting_ == wire_nesting_max) full_ = true;
    const auto length_field = reserve(sizeof(std::uint32_t));
    if (full_) return;
    const auto begin = used_;
    ++nesting_;
    const_cast<T&>(value).fields(*this); // one list of fields for both directions; this one only reads
    --nesting_;
    if (used_ - begin > UINT32_MAX) full_ = true;
    const auto length = static_cast<std::uint32_t>(used_ - begin);
    std::memcpy(length_field.data(), &length, sizeof length);
  }

  std::span<std::byte> into_;
  std::size_t used_{0};
  unsigned nesting_{0};
  bool full_{false};
};

// Reads the caller's bytes; after a failure every value reads as it was.
class byte_reader {
public:
  explicit byte_reader(std::span<const std::byte> from)
      : from_{from} {}

  // Inside of a struct these are its fields: those behind its end keep what they are.
  template <class... Ts>
  void operator()(Ts&... values) {
    (read_field(values), ...);
  }
  [[nodiscard]] std::span<const std::byte> take(std::size_t count) { // empty when there is less
    if (count > from_.size()) fail();
    if (failed_) return {};
    const auto taken = from_.first(count);
    from_ = from_.subspan(count);
    return taken;
  }
  void fail() { failed_ = true; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] std::size_t left() const { return from_.size(); }

private:
  template <class T>
  void read_field(T& value) {
    if (nesting_ == 0 || !from_.empty()) read(value);
  }
  std::size_t length() { // CD-2: of elements that take a byte each, at least
    std::uint32_t count = 0;
    read(count);
    if (count > from_.size()) fail();
    return failed_ ? 0 : count;
  }
  template <wire_number T>
  void read(T& value) {
    const auto bytes = take(sizeof value);
    if (!failed_) std::memcpy(&value, bytes.data(), sizeof value);
  }
  void read(bool& value) {
    std::uint8_t byte = 0;
    read(byte);
    if (byte > 1) fail();
    if (!failed_) value = byte == 1;
  }
  void read(std::string& text) {
    const auto bytes = take(length());
    text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(T& value) {
    std::underlying_type_t<T> number{};
    read(number);
    if constexpr (wire_last<T>.has_value()) {
      if (number < 0 || number > static_cast<std::underlying_type_t<T>>(*wire_last<T>)) fail();
    }
    if (!failed_) value = static_cast<T>(number);
  }
  template <class Tag, class Rep>
  void read(strong_number<Tag, Rep>& number) {
    Rep value{};
    read(value);
    if (!failed_) number = strong_number<Tag, Rep>{value};
  }
  template <class Tag>
  void read(random_id<Tag>& id) {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    read(high);
    read(low);
    if (!failed_) id = random_id<Tag>{high, low};
  }
  template <class Rep, class Period>
  void read(std::chrono::duration<Rep, Period>& span) {
    Rep count{};
    read(count);
    if (!failed_) span = std::chrono::duration<Rep, Period>{count};
  }
  template <class Clock, class Span>
  void read(std::chrono::time_point<Clock, Span>& when) {
    Span since{};
    read(since);
    if (!failed_) when = std::chrono::time_point<Clock, Span>{since};
  }
  void read(error& failure) {
    read(failure.code);
    read(failure.text);
  }
  template <class A, class B>
  void read(std::pair<A, B>& both) {
    read(both.first);
    read(both.second);
  }
  template <class T>
  void read(std::optional<T>& value) {
    bool there = false;
    read(there);
    if (failed_) return;
    if (there)
      read(value.emplace());
    else
      value.reset();
  }
  template <class T, std::size_t N>
  void read(std::array<T, N>& values) {
    if constexpr (wire_number<T> || std::same_as<T, std::byte>) {
      const auto bytes = take(sizeof values);
      if (!failed_ && N != 0) std::memcpy(values.data(), bytes.data(), sizeof values);
    } else {
      for (auto& value : values)
        read(value);
    }
  }
  template <class T>
  void read(std::vector<T>& values) {
    const auto count = length();
    values.clear();
    if constexpr (wire_number<T> || std::same_as<T, std::byte>) {
      const auto bytes = take(count * sizeof(T));
      if (failed_ || bytes.empty()) return;
      values.resize(count);
      std::memcpy(values.data(), bytes.data(), bytes.size());
    } else {
      for (std::size_t i = 0; i < count && !failed_; ++i)
        read(values.emplace_back());
    }
  }
  template <class T>
  requires requires(T& value, byte_reader& archive) { value.fields(archive); }
  void read(T& value) {
    if (nesting_ == wire_nesting_max) fail();
    const auto inside = take(length());
    if (failed_) return;
    const auto behind = std::exchange(from_, inside);
    ++nesting_;
    value.fields(*this);
    --nesting_;
    from_ = behind; // what a later version has appended is skipped
  }

  std::span<const std::byte> from_;
  unsigned nesting_{0};
  bool failed_{false};
};

template <>
inline constexpr std::optional<errc> wire_last<errc>{errc::internal};

// The form of one message type. Specialise for another form; keep these members.
template <class T>
struct codec {
  static constexpr std::string_view name = T::wire_name;
  static void encode(const T& value, byte_writer& into) { into(value); }
  static void decode(T& value, byte_reader& from) { from(value); }
};

// Messages that a type marks so (`static constexpr bool generation_bound = true`) are dropped by a receiver
// whose generation has moved on.
template <class T>
inline constexpr bool generation_bound = [] {
  if constexpr (requires { T::generation_bound; })
    return T::generation_bound;
  else
    return false;
}();

// errc::too_large.
template <class T>
[[nodiscard]] expected<std::span<const std::byte>> encode_body(const T& value, std::span<std::byte> into) {
  byte_writer writer{into};
  codec<T>::encode(value, writer);
  if (writer.full()) return error{errc::too_large, std::string{codec<T>::name} + ": does not fit a message"};
  return writer.bytes();
}

// errc::corrupt.
template <class T>
[[nodiscard]] expected<T> decode_body(std::span<const std::byte> bytes) {
  byte_reader reader{bytes};
  T value{};
  codec<T>::decode(value, reader);
  if (reader.failed() || reader.left() != 0)
    return error{errc::corrupt, std::string{codec<T>::name} + ": malformed body"};
  return value;
}

} // namespace troupe
