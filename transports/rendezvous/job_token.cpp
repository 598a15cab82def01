#include "transports/rendezvous/job_token.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include "runtime/base/ids.hpp"
#include "transports/rendezvous/limits.hpp"

namespace troupe {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::size_t read_bytes_max = limits::token_bytes_max + 256; // with white space around it

expected<std::string> read_all(int descriptor, const std::string& source) {
  std::string raw;
  raw.reserve(read_bytes_max + 1); // no copy of the secret is left behind by growing
  std::array<char, 512> piece{};
  while (raw.size() <= read_bytes_max) {
    const auto got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error{errc::bad_argument, source + ": cannot be read: " + std::strerror(errno)};
    if (got == 0) break;
    raw.append(piece.data(), std::min(static_cast<std::size_t>(got), read_bytes_max + 1 - raw.size()));
  }
  OPENSSL_cleanse(piece.data(), piece.size());
  return raw;
}

} // namespace

job_token::job_token(std::string text)
    : text_{std::move(text)} {}

job_token::job_token(job_token&& other) noexcept
    : text_{std::move(other.text_)} {}

job_token& job_token::operator=(job_token&& other) noexcept {
  if (this != &other) {
    wipe();
    text_ = std::move(other.text_);
  }
  return *this;
}

job_token::~job_token() {
  wipe();
}

void job_token::wipe() noexcept {
  OPENSSL_cleanse(text_.data(), text_.size());
  text_.clear();
}

job_token job_token::generate(entropy& random) {
  const auto first = random.next();
  const auto second = random.next();
  const auto third = random.next();
  return job_token{to_hex(first, second) + to_hex(third, random.next())};
}

expected<job_token> job_token::from_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return error{errc::bad_argument, path + ": cannot be opened: " + std::strerror(errno) +
                                         "; accepted: a readable file with the job's token"};
  auto raw = read_all(descriptor, path);
  ::close(descriptor);
  if (!raw) return raw.failure();
  return checked(std::move(*raw), path);
}

expected<job_token> job_token::from_descriptor(int descriptor) {
  const auto source = "token descriptor " + std::to_string(descriptor);
  auto raw = read_all(descriptor, source);
  if (!raw) return raw.failure();
  return checked(std::move(*raw), source);
}

expected<job_token> job_token::checked(std::string raw, const std::string& source) {
  const auto first = raw.find_first_not_of(white_space);
  const auto last = raw.find_last_not_of(white_space);
  const auto bytes = first == std::string::npos ? 0 : last - first + 1;
  job_token token{bytes == 0 ? std::string{} : raw.substr(first, bytes)};
  OPENSSL_cleanse(raw.data(), raw.size());
  if (bytes >= limits::token_bytes_min && bytes <= limits::token_bytes_max) return token;
  return error{errc::bad_argument, source + ": not a token; accepted: a secret of " +
                                       std::to_string(limits::token_bytes_min) + " to " +
                                       std::to_string(limits::token_bytes_max) + " bytes"};
}

} // namespace troupe
