// The job token: the secret that the processes of one job share.
//
// It is never printed, logged or put into an error; it is wiped from memory when it goes. `text` is for
// handing it on through a descriptor that only the receiver can read.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/error.hpp"
#include "runtime/seams/entropy.hpp"

namespace troupe {

class job_token {
public:
  // 256 random bits as 64 hex digits.
  [[nodiscard]] static job_token generate(entropy& random);
  // White space around it is ignored; 16 to 1024 bytes are left. errc::bad_argument: names the file.
  [[nodiscard]] static expected<job_token> from_file(const std::string& path);
  // Reads to the end; the descriptor stays open. errc::bad_argument: names the descriptor.
  [[nodiscard]] static expected<job_token> from_descriptor(int descriptor);

  job_token(job_token&& other) noexcept;
  job_token& operator=(job_token&& other) noexcept;
  job_token(const job_token&) = default;
  job_token& operator=(const job_token&) = default;
  ~job_token();

  [[nodiscard]] std::string_view text() const { return text_; }

private:
  explicit job_token(std::string text);
  [[nodiscard]] static expected<job_token> checked(std::string raw, const std::string& source);
  void wipe() noexcept;
  std::string text_;
};

} // namespace troupe
