#include "actors/remote/codec_table.hpp"

#include <utility>

#include "runtime/base/invariant.hpp"

namespace troupe {

codec_table& codec_table::add(entry what, const std::type_info* type) {
  const auto number = what.type;
  const auto [place, fresh] = by_number_.try_emplace(number, std::move(what));
  const auto* known = find(type);
  invariant(fresh || known == &place->second, "CT-1: one number, one type");
  by_type_.insert_or_assign(*type, number);
  by_address_.insert_or_assign(type, number);
  return *this;
}

// A type that another library knows has another address there, and the same name.
const codec_table::entry* codec_table::find(const std::type_info* type) const {
  if (const auto here = by_address_.find(type); here != by_address_.end())
    return &by_number_.at(here->second);
  const auto known = by_type_.find(*type);
  return known != by_type_.end() ? &by_number_.at(known->second) : nullptr;
}

expected<encoded_message> codec_table::encode(const caf::type_erased_tuple& content,
                                              std::span<std::byte> into) const {
  if (content.size() == 0) return encoded_message{};
  if (content.match_elements<wire_message>()) {
    const auto& raw = content.get_as<wire_message>(0);
    if (raw.bytes == nullptr) return encoded_message{raw.type, {}, false};
    return encoded_message{raw.type, *raw.bytes, false};
  }
  const auto* type = content.size() == 1 ? content.type(0).second : nullptr;
  const auto* form = type != nullptr ? find(type) : nullptr;
  if (form == nullptr) return error{errc::bad_argument, "no codec for a message of " + content.stringify()};
  const auto body = form->encode(content.get(0), into);
  if (!body) return body.failure();
  return encoded_message{form->type, *body, form->generation_bound};
}

expected<caf::message> codec_table::decode(std::uint64_t type, std::span<const std::byte> body) const {
  if (type == 0 && body.empty()) return caf::message{};
  const auto known = by_number_.find(type);
  if (known != by_number_.end()) return known->second.decode(body);
  auto bytes = std::make_shared<const std::vector<std::byte>>(body.begin(), body.end());
  return caf::make_message(wire_message{type, std::move(bytes)});
}

std::string codec_table::name_of(std::uint64_t type) const {
  const auto known = by_number_.find(type);
  return known != by_number_.end() ? known->second.name : "type " + std::to_string(type);
}

} // namespace troupe
