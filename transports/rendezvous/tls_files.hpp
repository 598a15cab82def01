// Certificates and keys out of PEM files. Private to this room.
//
// Fails:    errc::bad_argument, one line: option, file, what is wrong, what is accepted. No content is in it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "runtime/base/error.hpp"

namespace troupe {

template <auto Free>
struct freed_by {
  void operator()(auto* object) const { Free(object); }
};
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;

// At least one, in the file's order.
[[nodiscard]] expected<std::vector<certificate_ptr>> read_certificates(std::string_view option,
                                                                       const std::string& path);
// Refused when others than its owner may read it.
[[nodiscard]] expected<key_ptr> read_key(std::string_view option, const std::string& path);
// Of one's own certificate: now is between its dates.
[[nodiscard]] expected<void> check_dates(std::string_view option, const std::string& path,
                                         const X509& certificate);
[[nodiscard]] std::string digest_of(const X509& certificate); // SHA-256, in hex; empty: it has none

} // namespace troupe
