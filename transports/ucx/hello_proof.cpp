#include "transports/ucx/hello_proof.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "runtime/base/invariant.hpp"

namespace troupe {
namespace {

constexpr std::string_view purpose = "troupe hello";
constexpr std::size_t sha256_bytes = 32;

std::array<std::byte, sha256_bytes> sha256(std::span<const std::byte> bytes) {
  std::array<std::byte, sha256_bytes> digest{};
  unsigned length = 0;
  const bool made = EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(digest.data()),
                               &length, EVP_sha256(), nullptr) == 1;
  invariant(made && length == digest.size(), "SHA-256 gives 32 bytes");
  return digest;
}

} // namespace

hello_proof prove_hello(const path_secret& secret, const hello_claim& claim) {
  const std::array<std::uint64_t, 7> numbers{claim.job.high(), claim.job.low(), claim.from.high(),
                                             claim.from.low(), claim.to.high(), claim.to.low(),
                                             claim.path};
  const auto address = sha256(claim.address);
  std::array<std::byte, purpose.size() + sizeof(numbers) + sha256_bytes> text{};
  auto* at = text.data();
  std::memcpy(at, purpose.data(), purpose.size());
  std::memcpy(at + purpose.size(), numbers.data(), sizeof(numbers));
  std::memcpy(at + purpose.size() + sizeof(numbers), address.data(), address.size());
  std::array<std::byte, sha256_bytes> whole{};
  unsigned length = 0;
  const auto& key = secret.bytes();
  const auto* made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(whole.data()), &length);
  invariant(made != nullptr && length == whole.size(), "HMAC-SHA256 gives 32 bytes");
  hello_proof proof{};
  std::copy_n(whole.begin(), proof.size(), proof.begin());
  return proof;
}

bool proves(const hello_proof& received, const path_secret& secret, const hello_claim& claim) {
  const auto expected_proof = prove_hello(secret, claim);
  return secret.valid() && CRYPTO_memcmp(expected_proof.data(), received.data(), received.size()) == 0;
}

} // namespace troupe
