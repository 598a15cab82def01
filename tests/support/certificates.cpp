#include "tests/support/certificates.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace troupe::test {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error{what};
}

template <class Write>
std::string pem_of(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio{BIO_new(BIO_s_mem()), &BIO_free};
  require(write(bio.get()) == 1, "PEM is written");
  char* text = nullptr;
  const auto bytes = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(bytes)};
}

std::string pem_of(X509& certificate) {
  return pem_of([&](BIO* to) { return PEM_write_bio_X509(to, &certificate); });
}
std::string pem_of(EVP_PKEY& key) {
  return pem_of(
      [&](BIO* to) { return PEM_write_bio_PrivateKey(to, &key, nullptr, nullptr, 0, nullptr, nullptr); });
}

void set_name(X509_NAME* name, const std::string& common_name) {
  require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                     reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                                     0) == 1,
          "a name is set");
}

void extend(X509& certificate, int what, const std::string& value) {
  if (value.empty()) return;
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension{
      X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str()), &X509_EXTENSION_free};
  require(extension != nullptr && X509_add_ext(&certificate, extension.get(), -1) == 1,
          "an extension is set");
}

} // namespace

scratch_folder::scratch_folder() {
  auto pattern = (std::filesystem::temp_directory_path() / "troupe-certificates-XXXXXX").string();
  require(::mkdtemp(pattern.data()) != nullptr, "a folder is made");
  path_ = pattern;
}

scratch_folder::~scratch_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string scratch_folder::write(const std::string& name, const std::string& text) const {
  std::ofstream{path_ / name} << text;
  std::filesystem::permissions(path_ / name,
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return path(name);
}

std::string scratch_folder::read(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream{path_ / name}.rdbuf();
  return text.str();
}

test_authority::test_authority(const scratch_folder& folder, std::string name)
    : folder_{folder}
    , name_{std::move(name)}
    , key_{EVP_EC_gen("P-256"), &EVP_PKEY_free}
    , own_{sign(name_, *key_, {.alternatives = ""}, "critical,CA:TRUE")}
    , file_{folder.write(name_ + ".pem", pem_of(*own_))} {}

test_authority::certificate_ptr test_authority::sign(const std::string& name, EVP_PKEY& key,
                                                     const certificate_wish& wish,
                                                     const char* constraints) const {
  certificate_ptr made{X509_new(), &X509_free};
  std::uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof(serial)) == 1, "random bytes come");
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(made.get()), serial >> 1U);
  X509_set_version(made.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), wish.from.count());
  X509_gmtime_adj(X509_getm_notAfter(made.get()), wish.until.count());
  X509_set_pubkey(made.get(), &key);
  set_name(X509_get_subject_name(made.get()), name);
  set_name(X509_get_issuer_name(made.get()), name_);
  extend(*made, NID_basic_constraints, constraints);
  extend(*made, NID_subject_alt_name, wish.alternatives);
  extend(*made, NID_ext_key_usage, wish.usage);
  require(X509_sign(made.get(), key_.get(), EVP_sha256()) > 0, "a certificate is signed");
  return made;
}

pem_files test_authority::issue(const std::string& name, const certificate_wish& wish) const {
  const key_ptr key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  const auto certificate = sign(name, *key, wish, "CA:FALSE");
  return {.certificate = folder_.write(name + ".pem", pem_of(*certificate)),
          .key = folder_.write(name + ".key", pem_of(*key))};
}

} // namespace troupe::test
