// A shared library, loaded at run time and never unloaded: CUDA and NCCL leave threads and handlers behind.
#pragma once

#include <span>
#include <string>

#include "runtime/base/error.hpp"

namespace troupe {

class dynamic_library {
public:
  dynamic_library() = default;
  // The first of `names` (paths, or names for the system's search) that loads; errc::not_found carries the
  // system's reason for the first one.
  [[nodiscard]] static expected<dynamic_library> open(std::span<const std::string> names);

  [[nodiscard]] const std::string& name() const { return name_; }
  // Sets `into` to the function `symbol`; errc::wrong_version names it where it is missing.
  template <class Function>
  [[nodiscard]] expected<void> bind(const char* symbol, Function*& into) const {
    void* const found = find(symbol);
    if (found == nullptr) return error{errc::wrong_version, name_ + " has no " + symbol};
    into = reinterpret_cast<Function*>(found);
    return {};
  }

private:
  dynamic_library(void* handle, std::string name)
      : handle_{handle}
      , name_{std::move(name)} {}
  [[nodiscard]] void* find(const char* symbol) const;

  void* handle_{nullptr};
  std::string name_;
};

} // namespace troupe
