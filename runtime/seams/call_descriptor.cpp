#include "runtime/seams/call_descriptor.hpp"

namespace troupe {
namespace {

bool moves_data(collective_call call) {
  return call != collective_call::barrier;
}

bool reduces(collective_call call) {
  return call == collective_call::all_reduce || call == collective_call::reduce_scatter;
}

bool same_call(collective_call ours, collective_call theirs) {
  if (between_two(ours) && between_two(theirs)) return ours != theirs;
  return ours == theirs;
}

} // namespace

call_descriptor describe(const group_operation& what) {
  return {call_of(what.call), what.type, what.op, what.peer, what.elements};
}

std::string_view to_string(collective_call call) {
  constexpr std::string_view names[collective_calls]{"sum",        "all_reduce", "reduce_scatter",
                                                     "all_gather", "broadcast",  "all_to_all",
                                                     "send",       "receive",    "barrier"};
  const auto index = static_cast<std::size_t>(call);
  return index < collective_calls ? names[index] : "unknown call";
}

std::string_view to_string(element_type type) {
  constexpr std::string_view names[element_types]{"float32",  "float64", "float16",
                                                  "bfloat16", "int32",   "int64"};
  const auto index = static_cast<std::size_t>(type);
  return index < element_types ? names[index] : "unknown type";
}

std::string_view to_string(reduce_op op) {
  constexpr std::string_view names[reduce_ops]{"sum", "avg", "min", "max"};
  const auto index = static_cast<std::size_t>(op);
  return index < reduce_ops ? names[index] : "unknown op";
}

std::string_view to_string(call_difference what) {
  constexpr std::string_view names[]{"the same call",     "another call", "another element type",
                                     "another operation", "another root", "another size"};
  return names[static_cast<std::size_t>(what)];
}

std::string to_text(const call_descriptor& what) {
  std::string text{to_string(what.call)};
  if (!moves_data(what.call)) return text;
  text += " of " + std::to_string(what.elements) + " " + std::string{to_string(what.type)};
  if (reduces(what.call)) text += ", " + std::string{to_string(what.op)};
  if (what.call == collective_call::broadcast || what.call == collective_call::receive)
    text += " from rank " + std::to_string(what.peer);
  if (what.call == collective_call::send) text += " to rank " + std::to_string(what.peer);
  return text;
}

call_difference difference(const call_descriptor& ours, const call_descriptor& theirs) {
  if (!same_call(ours.call, theirs.call)) return call_difference::call;
  if (!moves_data(ours.call)) return call_difference::none;
  if (ours.type != theirs.type) return call_difference::type;
  if (reduces(ours.call) && ours.op != theirs.op) return call_difference::op;
  if (ours.call == collective_call::broadcast && ours.peer != theirs.peer) return call_difference::root;
  return ours.elements == theirs.elements ? call_difference::none : call_difference::size;
}

std::string explain_difference(const call_descriptor& ours, const call_descriptor& theirs) {
  const auto what = difference(ours, theirs);
  if (what == call_difference::none) return {};
  return std::string{to_string(what)} + ": " + to_text(ours) + ", and " + to_text(theirs);
}

} // namespace troupe
