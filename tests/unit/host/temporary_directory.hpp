// A fresh directory, removed with everything in it at the end of a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe {

class temporary_directory {
public:
  temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-test-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~temporary_directory() { std::filesystem::remove_all(path_); }
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const { return path_ + "/" + std::string{name}; }

private:
  std::string path_;
};

} // namespace troupe
