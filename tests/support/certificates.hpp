// Certificates for tests: authorities and what they sign, made anew by each test in a folder of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include <openssl/x509.h>

namespace troupe::test {

// A folder in the system's temporary one.
class scratch_folder {
public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  [[nodiscard]] std::string path(const std::string& name) const { return path_ / name; }
  // Writes a file that only its owner may read, and gives its path.
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const;
  [[nodiscard]] std::string read(const std::string& name) const;

private:
  std::filesystem::path path_;
};

struct pem_files {
  std::string certificate;
  std::string key;
};

struct certificate_wish {
  std::string alternatives{"IP:127.0.0.1"}; // subjectAltName, as OpenSSL's settings write it
  std::chrono::seconds from{-3600};         // now
  std::chrono::seconds until{3600};
  std::string usage{}; // extendedKeyUsage; empty: any
};

class test_authority {
public:
  test_authority(const scratch_folder& folder, std::string name); // name: of its files, too
  [[nodiscard]] const std::string& file() const { return file_; } // its own certificate
  // Files NAME.pem and NAME.key.
  [[nodiscard]] pem_files issue(const std::string& name, const certificate_wish& wish = {}) const;

private:
  using key_ptr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using certificate_ptr = std::unique_ptr<X509, decltype(&X509_free)>;
  [[nodiscard]] certificate_ptr sign(const std::string& name, EVP_PKEY& key, const certificate_wish& wish,
                                     const char* constraints) const;

  const scratch_folder& folder_;
  std::string name_;
  key_ptr key_;
  certificate_ptr own_;
  std::string file_;
};

} // namespace troupe::test
