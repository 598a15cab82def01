#include "transports/rendezvous/tls_context.hpp"

#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "transports/rendezvous/limits.hpp"
#include "transports/rendezvous/tls_files.hpp"

namespace troupe {
namespace {

constexpr std::string_view cert_option = "--tls-cert";
constexpr std::string_view key_option = "--tls-key";
constexpr std::string_view ca_option = "--tls-ca";
constexpr std::string_view binding_label = "EXPORTER-Channel-Binding";
constexpr std::size_t binding_bytes = 32;

error unusable(std::string_view option, const std::string& path, const std::string& what,
               std::string_view accepted) {
  ERR_clear_error();
  return {errc::bad_argument,
          std::string{option} + " " + path + ": " + what + "; accepted: " + std::string{accepted}};
}

std::string reason_text(unsigned long code) {
  const char* text = ERR_reason_error_string(code);
  return text == nullptr ? "error " + std::to_string(ERR_GET_REASON(code)) : text;
}

bool is_of_no_authority(long result) {
  switch (result) {
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    return true;
  default:
    return false;
  }
}

} // namespace

struct tls_context::parts {
  tls_settings settings;
  bool listens{false};
  std::unique_ptr<SSL_CTX, freed_by<SSL_CTX_free>> context;
  std::string digest; // of one's own certificate

  expected<void> open();
  expected<void> show_certificate();
  expected<void> believe_authority();
  static int verify(X509_STORE_CTX* chain, void* of);
  [[nodiscard]] std::string unverified(long result, const std::string& host) const;
  [[nodiscard]] std::string alerted(int alert) const;
};

expected<void> tls_context::parts::open() {
  context.reset(SSL_CTX_new(listens ? TLS_server_method() : TLS_client_method()));
  invariant(context != nullptr && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1,
            "OpenSSL speaks TLS 1.3");
  // A session is one exchange: nothing is resumed.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_max_cert_list(context.get(), limits::tls_chain_bytes_max);
  SSL_CTX_set_verify_depth(context.get(), limits::tls_chain_depth_max);
  SSL_CTX_set_cert_verify_callback(context.get(), verify, this);
  if (!settings.certificate.empty()) {
    if (auto shown = show_certificate(); !shown) return shown;
  }
  if (!settings.authority.empty()) {
    if (auto believed = believe_authority(); !believed) return believed;
  }
  const bool demands = !listens || !settings.authority.empty();
  SSL_CTX_set_verify(context.get(),
                     demands ? SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT : SSL_VERIFY_NONE, nullptr);
  return {};
}

expected<void> tls_context::parts::show_certificate() {
  auto chain = read_certificates(cert_option, settings.certificate);
  if (!chain) return chain.failure();
  auto& own = *chain->front();
  // A job may outlive its director's certificate: the workers that it starts know it by its digest.
  if (settings.director.empty()) {
    if (auto valid = check_dates(cert_option, settings.certificate, own); !valid) return valid;
  }
  const auto key = read_key(key_option, settings.key);
  if (!key) return key.failure();
  if (X509_check_private_key(&own, key->get()) != 1)
    return unusable(key_option, settings.key,
                    "not the key of " + std::string{cert_option} + " " + settings.certificate,
                    "the key that this certificate was made for");
  bool taken = SSL_CTX_use_certificate(context.get(), &own) == 1 &&
               SSL_CTX_use_PrivateKey(context.get(), key->get()) == 1;
  for (std::size_t i = 1; taken && i < chain->size(); ++i)
    taken = SSL_CTX_add1_chain_cert(context.get(), (*chain)[i].get()) == 1;
  digest = digest_of(own);
  if (!taken || digest.empty())
    return unusable(cert_option, settings.certificate, reason_text(ERR_peek_last_error()),
                    "a certificate that TLS 1.3 can use");
  return {};
}

// Whatever is in the file is believed, also one that is no root: it is what the user has chosen to trust.
expected<void> tls_context::parts::believe_authority() {
  auto believed = read_certificates(ca_option, settings.authority);
  if (!believed) return believed.failure();
  auto* store = SSL_CTX_get_cert_store(context.get());
  for (const auto& one : *believed) {
    if (X509_STORE_add_cert(store, one.get()) != 1)
      return unusable(ca_option, settings.authority, reason_text(ERR_peek_last_error()),
                      "a PEM file of certificates");
  }
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

// TL-1, TL-2. OpenSSL checks in any case that the other side holds the key.
int tls_context::parts::verify(X509_STORE_CTX* chain, void* of) {
  const auto& self = *static_cast<const parts*>(of);
  const auto& known = self.listens ? self.digest : self.settings.director;
  const auto* shown = X509_STORE_CTX_get0_cert(chain);
  if (!known.empty() && shown != nullptr && digest_of(*shown) == known) {
    X509_STORE_CTX_set_error(chain, X509_V_OK);
    return 1;
  }
  if (self.listens || known.empty()) return X509_verify_cert(chain);
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

std::string tls_context::parts::unverified(long result, const std::string& host) const {
  const std::string whose = listens ? "the joiner's certificate " : "the director's certificate ";
  if (is_of_no_authority(result))
    return whose + "is of no authority in " + std::string{ca_option} + " " + settings.authority +
           "; accepted: the authority's that has signed it";
  switch (result) {
  case X509_V_ERR_CERT_HAS_EXPIRED:
    return whose + "has expired; accepted: one that is valid now, by this machine's clock";
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return whose + "is not valid yet; accepted: one that is valid now, by this machine's clock";
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return whose + "is not for '" + host +
           "'; accepted: --join with a name or address that its subjectAltName holds";
  case X509_V_ERR_APPLICATION_VERIFICATION:
    return whose + "is another one than this worker was started with";
  default:
    return whose + "was not accepted: " + X509_verify_cert_error_string(result);
  }
}

// What the other side has said before it closed.
std::string tls_context::parts::alerted(int alert) const {
  if (listens) return std::string{"the joiner ended TLS: "} + SSL_alert_desc_string_long(alert);
  switch (alert) {
  case SSL_AD_CERTIFICATE_REQUIRED:
    return "the director demands a certificate; accepted: with --tls-cert FILE and --tls-key FILE";
  case SSL_AD_UNKNOWN_CA:
    return "the director's --tls-ca does not hold the authority of --tls-cert " + settings.certificate +
           "; accepted: a certificate of that authority";
  case SSL_AD_BAD_CERTIFICATE:
  case SSL_AD_UNSUPPORTED_CERTIFICATE:
  case SSL_AD_CERTIFICATE_REVOKED:
  case SSL_AD_CERTIFICATE_EXPIRED:
  case SSL_AD_CERTIFICATE_UNKNOWN:
    return "the director did not accept --tls-cert " + settings.certificate + ": " +
           SSL_alert_desc_string_long(alert);
  default:
    return std::string{"the director ended TLS: "} + SSL_alert_desc_string_long(alert);
  }
}

tls_context::tls_context(std::unique_ptr<parts> made)
    : parts_{std::move(made)} {}
tls_context::~tls_context() = default;

expected<tls_context::ptr> tls_context::of_director(const tls_settings& settings) {
  auto made = std::make_unique<parts>(parts{.settings = settings, .listens = true});
  invariant(!settings.certificate.empty() && !settings.key.empty(), "a director shows a certificate");
  if (auto opened = made->open(); !opened) return opened.failure();
  return ptr{new tls_context{std::move(made)}};
}

expected<tls_context::ptr> tls_context::of_joiner(const tls_settings& settings) {
  auto made = std::make_unique<parts>(parts{.settings = settings});
  invariant(!settings.authority.empty() || !settings.director.empty(), "a joiner knows whom to believe");
  if (auto opened = made->open(); !opened) return opened.failure();
  return ptr{new tls_context{std::move(made)}};
}

const std::string& tls_context::digest() const {
  return parts_->digest;
}

bool tls_context::listens() const {
  return parts_->listens;
}

ssl_st* tls_context::new_session(const std::string& host) const {
  SSL* session = SSL_new(parts_->context.get());
  invariant(session != nullptr, "a TLS session takes little memory");
  if (parts_->listens || !parts_->settings.director.empty()) return session;
  auto* demands = SSL_get0_param(session);
  X509_VERIFY_PARAM_set_hostflags(demands,
                                  X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (X509_VERIFY_PARAM_set1_ip_asc(demands, host.c_str()) != 1) { // a name, then
    invariant(SSL_set1_host(session, host.c_str()) == 1, "whom a joiner means is checked");
    SSL_set_tlsext_host_name(session, host.c_str());
  }
  ERR_clear_error();
  return session;
}

error tls_context::explain(unsigned code, const ssl_st& session, const std::string& host) const {
  const int reason = ERR_GET_REASON(code);
  const auto refused = [](std::string text) { return error{errc::refused, std::move(text)}; };
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
    return refused(parts_->unverified(SSL_get_verify_result(&session), host));
  if (reason == SSL_R_WRONG_VERSION_NUMBER && !parts_->listens)
    return refused("no TLS is spoken there; accepted: a director with --tls-cert FILE and --tls-key FILE");
  if (reason >= SSL_AD_REASON_OFFSET) return refused(parts_->alerted(reason - SSL_AD_REASON_OFFSET));
  return refused("TLS failed: " + reason_text(code));
}

std::vector<std::byte> tls_context::binding_of(ssl_st& session) {
  std::vector<std::byte> binding(binding_bytes);
  invariant(SSL_export_keying_material(&session, reinterpret_cast<unsigned char*>(binding.data()),
                                       binding.size(), binding_label.data(), binding_label.size(), nullptr, 0,
                                       0) == 1,
            "a TLS 1.3 session exports keys after its handshake");
  return binding;
}

} // namespace troupe
