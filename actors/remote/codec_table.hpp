// Codec table: which message types may cross a process, and how.
//
// Built once by whoever composes the program, then only read. No registration behind anyone's back.
// Invariants:
//   CT-1    one number, one type: two types whose names collide are a bug found when added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <unordered_map>

#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/type_erased_tuple.hpp>

#include "actors/remote/wire_message.hpp"
#include "runtime/wire/codec.hpp"

namespace troupe {

struct encoded_message {
  std::uint64_t type{0}; // 0: an empty message
  std::span<const std::byte> body;
  bool generation_bound{false};
};

class codec_table {
public:
  template <class T>
  codec_table& add() {
    return add(entry{wire_type_of(codec<T>::name), std::string{codec<T>::name}, generation_bound<T>,
                     [](const void* value, std::span<std::byte> into) {
                       return encode_body(*static_cast<const T*>(value), into);
                     },
                     [](std::span<const std::byte> body) -> expected<caf::message> {
                       auto value = decode_body<T>(body);
                       if (!value) return value.failure();
                       return caf::make_message(std::move(*value));
                     }},
               &typeid(T));
  }
  template <class First, class Second, class... Rest>
  codec_table& add() {
    add<First>();
    return add<Second, Rest...>();
  }

  // Encodes a message of one element (or none) to the front of `into`. errc: bad_argument (no codec),
  // too_large.
  [[nodiscard]] expected<encoded_message> encode(const caf::type_erased_tuple& content,
                                                 std::span<std::byte> into) const;
  // A type unknown here becomes a wire_message. errc::corrupt.
  [[nodiscard]] expected<caf::message> decode(std::uint64_t type, std::span<const std::byte> body) const;
  [[nodiscard]] std::string name_of(std::uint64_t type) const; // for reports

private:
  struct entry {
    std::uint64_t type;
    std::string name;
    bool generation_bound;
    expected<std::span<const std::byte>> (*encode)(const void*, std::span<std::byte>);
    expected<caf::message> (*decode)(std::span<const std::byte>);
  };
  codec_table& add(entry what, const std::type_info* type);
  [[nodiscard]] const entry* find(const std::type_info* type) const;

  std::unordered_map<std::uint64_t, entry> by_number_;
  std::unordered_map<std::type_index, std::uint64_t> by_type_;
  std::unordered_map<const std::type_info*, std::uint64_t> by_address_; // the same, without comparing names
};

} // namespace troupe
