// The exchange of a rendezvous, as bytes: frames, what they carry, and the proofs of the token.
//
//   client                                  server
//   hello(version, client nonce)     ->
//                                    <-     challenge(version, server nonce)
//   offer(join offer, proof)         ->                              checked before the offer is parsed
//                                    <-     answer(join answer or refusal, proof)
//   A refusal without proof may come instead of any frame of the server.
//
// A proof is HMAC-SHA256, keyed with the token, over: a purpose, both versions, both nonces, the proof
// that it answers to (zeros in an offer), the body, and what binds it to its TLS session, if there is one.
// So neither side can be made to sign for the other, nothing can be replayed, and the client proves itself
// first: a stranger learns nothing to guess against.
//
// Fails:    whatever is not exactly such a frame is errc::refused; nothing received here can throw.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/seams/rendezvous.hpp"

namespace troupe {

inline constexpr std::uint32_t rendezvous_version = 2;

using rendezvous_nonce = std::array<std::byte, 32>;
using rendezvous_proof = std::array<std::byte, 32>;
using wire_bytes = std::vector<std::byte>;

enum class exchange_step : unsigned char { hello, challenge, offer, answer, refusal };

struct exchange_frame {
  std::uint32_t version{0};
  exchange_step step{};
  wire_bytes body; // a nonce, or a signed body
  wire_bytes proof;
  error refusal; // of a refusal
};

// Frames ready to be written, their length in front (4 bytes, little-endian).
inline constexpr std::size_t frame_length_bytes = 4;
[[nodiscard]] wire_bytes encode_nonce(std::uint32_t version, exchange_step step,
                                      const rendezvous_nonce& nonce);
[[nodiscard]] wire_bytes encode_signed(std::uint32_t version, exchange_step step,
                                       std::span<const std::byte> body, const rendezvous_proof& proof);
[[nodiscard]] wire_bytes encode_refusal(std::uint32_t version, const error& why);
[[nodiscard]] std::size_t frame_length(std::span<const std::byte, frame_length_bytes> prefix);
// `bytes` is one frame without its length.
[[nodiscard]] expected<exchange_frame> decode_frame(std::span<const std::byte> bytes);
[[nodiscard]] expected<rendezvous_nonce> nonce_of(const exchange_frame& frame);

// The signed bodies.
[[nodiscard]] wire_bytes encode_offer(const join_offer& offer);
[[nodiscard]] expected<join_offer> decode_offer(std::span<const std::byte> bytes);
[[nodiscard]] wire_bytes encode_answer(const expected<join_answer>& answer);
[[nodiscard]] expected<join_answer> decode_answer(std::span<const std::byte> bytes);

struct proof_context {
  std::uint32_t client_version{0};
  std::uint32_t server_version{0};
  rendezvous_nonce client{};
  rendezvous_nonce server{};
  rendezvous_proof answers_to{}; // zeros in an offer
  wire_bytes binding;            // of the TLS session; empty without TLS
};
enum class proof_purpose : unsigned char { offer, answer };
[[nodiscard]] rendezvous_proof prove(std::string_view token, proof_purpose purpose,
                                     const proof_context& context, std::span<const std::byte> body);
// The job's path secret, which both sides compute: HKDF-SHA256 (RFC 5869) of the token, the job's id as its
// salt. It never crosses.
[[nodiscard]] path_secret derive_path_secret(std::string_view token, job_id job);
// In constant time.
[[nodiscard]] bool same_proof(const rendezvous_proof& expected_proof, std::span<const std::byte> received);

} // namespace troupe
