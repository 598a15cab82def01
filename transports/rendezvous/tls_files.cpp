#include "transports/rendezvous/tls_files.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transports/rendezvous/limits.hpp"

namespace troupe {
namespace {

using bio_ptr = std::unique_ptr<BIO, freed_by<BIO_free>>;

constexpr std::string_view accepted_certificates = "a PEM file of certificates";
constexpr std::string_view accepted_key = "a PEM file with the private key, without a pass phrase";

error refused(std::string_view option, const std::string& path, const std::string& what,
              std::string_view accepted) {
  return {errc::bad_argument,
          std::string{option} + " " + path + ": " + what + "; accepted: " + std::string{accepted}};
}

// A file's content, wiped when it goes.
class pem_text {
public:
  pem_text() { text_.reserve(limits::pem_bytes_max + 1); } // growing would leave copies
  ~pem_text() { OPENSSL_cleanse(text_.data(), text_.size()); }
  pem_text(const pem_text&) = delete;
  pem_text& operator=(const pem_text&) = delete;

  // What is wrong with the file, if anything.
  [[nodiscard]] std::optional<std::string> read(int descriptor) {
    std::array<char, 4096> piece{};
    std::optional<std::string> wrong;
    while (!wrong) {
      const auto got = ::read(descriptor, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) wrong = "cannot be read: " + std::string{std::strerror(errno)};
      if (got <= 0) break;
      const auto bytes = static_cast<std::size_t>(got);
      if (text_.size() + bytes > limits::pem_bytes_max)
        wrong = "larger than " + std::to_string(limits::pem_bytes_max) + " bytes";
      else
        text_.append(piece.data(), bytes);
    }
    OPENSSL_cleanse(piece.data(), piece.size());
    return wrong;
  }
  [[nodiscard]] bio_ptr bio() const {
    return bio_ptr{BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size()))};
  }

private:
  std::string text_;
};

class open_file {
public:
  explicit open_file(const std::string& path)
      : descriptor_{::open(path.c_str(), O_RDONLY | O_CLOEXEC)} {}
  ~open_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  [[nodiscard]] int descriptor() const { return descriptor_; }

private:
  int descriptor_;
};

// As ssh does, a key that others can read is refused: it has to be taken for known already. Its group may
// read it where root owns it: so do container platforms hand keys to a process that is not root.
std::optional<std::string> exposed(int descriptor) {
  struct stat found {};
  if (::fstat(descriptor, &found) != 0) return "cannot be read: " + std::string{std::strerror(errno)};
  const auto mode = found.st_mode & 0777U;
  const auto allowed = found.st_uid == 0 ? 0740U : 0700U;
  if ((mode & ~allowed) == 0) return std::nullopt;
  std::array<char, 8> shown{};
  std::snprintf(shown.data(), shown.size(), "%04o", mode);
  return "others than its owner can use it (mode " + std::string{shown.data()} + ")";
}

std::string date_of(const ASN1_TIME* time) {
  std::tm when{};
  if (ASN1_TIME_to_tm(time, &when) != 1) return "a date that cannot be read";
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M UTC", &when);
  return text.data();
}

// OpenSSL would ask the terminal for a pass phrase. Notes that one is needed, and has none.
int no_pass_phrase(char*, int, int, void* needed) {
  *static_cast<bool*>(needed) = true;
  return -1;
}

} // namespace

expected<std::vector<certificate_ptr>> read_certificates(std::string_view option, const std::string& path) {
  const open_file file{path};
  if (file.descriptor() < 0)
    return refused(option, path, "cannot be opened: " + std::string{std::strerror(errno)},
                   accepted_certificates);
  pem_text text;
  if (const auto wrong = text.read(file.descriptor()))
    return refused(option, path, *wrong, accepted_certificates);
  std::vector<certificate_ptr> found;
  const auto bio = text.bio();
  while (X509* one = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    found.emplace_back(one);
  const bool to_the_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (found.empty()) return refused(option, path, "no certificate in it", accepted_certificates);
  if (!to_the_end)
    return refused(option, path, "its certificate " + std::to_string(found.size() + 1) + " is damaged",
                   accepted_certificates);
  return found;
}

expected<key_ptr> read_key(std::string_view option, const std::string& path) {
  const open_file file{path};
  if (file.descriptor() < 0)
    return refused(option, path, "cannot be opened: " + std::string{std::strerror(errno)}, accepted_key);
  if (const auto wrong = exposed(file.descriptor()))
    return refused(option, path, *wrong, "a key that only its owner can read: chmod 600 " + path);
  pem_text text;
  if (const auto wrong = text.read(file.descriptor())) return refused(option, path, *wrong, accepted_key);
  bool encrypted = false;
  key_ptr key{PEM_read_bio_PrivateKey(text.bio().get(), nullptr, no_pass_phrase, &encrypted)};
  ERR_clear_error();
  if (key) return key;
  return refused(option, path, encrypted ? "protected by a pass phrase" : "no private key in it",
                 accepted_key);
}

expected<void> check_dates(std::string_view option, const std::string& path, const X509& certificate) {
  const auto* first = X509_get0_notBefore(&certificate);
  const auto* last = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(last) < 0)
    return refused(option, path, "expired on " + date_of(last), "a certificate that is valid now");
  if (X509_cmp_current_time(first) > 0)
    return refused(option, path, "not valid before " + date_of(first),
                   "a certificate that is valid now, by this machine's clock");
  return {};
}

std::string digest_of(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned length = 0;
  if (X509_digest(&certificate, EVP_sha256(), bytes.data(), &length) != 1) return {};
  std::string hex;
  for (unsigned i = 0; i < length; ++i) {
    hex += "0123456789abcdef"[bytes[i] >> 4U];
    hex += "0123456789abcdef"[bytes[i] & 15U];
  }
  return hex;
}

} // namespace troupe
