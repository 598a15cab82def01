// TLS of the rendezvous: what each side shows, and whom it believes. TLS 1.3 or nothing.
//
// Flow:     PEM files -> [tls_context] -> frame_stream's handshake
// Owns:     certificates and key in memory; files are read once, when it is made (it blocks then).
// Fails:    errc::bad_argument at the start, one line: option, file, what is wrong, what is accepted;
//           errc::refused in an exchange: why one side does not accept the other.
// Invariants:
//   TL-1    a joiner goes on only with the holder of the key of a certificate that an authority of --tls-ca
//           vouches for and that is for the host it meant; a worker that its director has started, only with
//           the holder of the director's own.
//   TL-2    a director that was given --tls-ca goes on only with the holder of a certificate of that
//           authority, or of its own certificate (a worker that it has started).
//   TL-3    a key's content is in no error, argument or environment, and no other user may read its file.
// Why:      docs/design/0031-tls-for-the-rendezvous.md
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/error.hpp"

struct ssl_st; // OpenSSL's SSL

namespace troupe {

// PEM files by their paths.
struct tls_settings {
  std::string certificate{}; // --tls-cert: one's own, then what leads to its authority
  std::string key{};         // --tls-key, without a pass phrase
  std::string authority{};   // --tls-ca: by whom the other side is verified
  // Of a worker that its director has started: SHA-256 of the director's certificate, in hex.
  std::string director{};
};

class tls_context {
public:
  using ptr = std::shared_ptr<const tls_context>;
  // Of a director: needs certificate and key; with an authority it demands certificates of who joins.
  [[nodiscard]] static expected<ptr> of_director(const tls_settings& settings);
  // Of who joins: needs an authority, or the director's certificate; shows a certificate if it has one.
  [[nodiscard]] static expected<ptr> of_joiner(const tls_settings& settings);
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  // SHA-256 of one's own certificate, as `tls_settings::director` takes it.
  [[nodiscard]] const std::string& digest() const;

  // For frame_stream:
  [[nodiscard]] bool listens() const;
  // Caller owns it. `host`: whom a joiner means, a name or a numeric address.
  [[nodiscard]] ssl_st* new_session(const std::string& host) const;
  // What an OpenSSL error code of that session means for people.
  [[nodiscard]] error explain(unsigned code, const ssl_st& session, const std::string& host) const;
  // RFC 9266, tls-exporter: both ends of a session have it, and whoever sits between two sessions has two.
  [[nodiscard]] static std::vector<std::byte> binding_of(ssl_st& session);

private:
  struct parts;
  explicit tls_context(std::unique_ptr<parts> made);
  std::unique_ptr<parts> parts_;
};

} // namespace troupe
