// What TLS is given as files: each mistake is one line that names option, file and remedy.
#include <filesystem>

#include <catch2/catch_test_macros.hpp>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "tests/support/certificates.hpp"
#include "transports/rendezvous/tls_context.hpp"

namespace troupe::test {
namespace {

struct papers {
  scratch_folder folder;
  test_authority authority{folder, "authority"};
  pem_files good{authority.issue("good")};
};

std::string refusal(const tls_settings& settings) {
  const auto made =
      settings.key.empty() ? tls_context::of_joiner(settings) : tls_context::of_director(settings);
  if (made) return "accepted";
  CHECK(made.failure().code == errc::bad_argument);
  CHECK(made.failure().text.find('\n') == std::string::npos);
  return made.failure().text;
}

TEST_CASE("tls files: what is whole is taken, a chain and a file of several authorities too") {
  const papers given;
  CHECK(refusal({.certificate = given.good.certificate, .key = given.good.key}) == "accepted");
  const auto chain =
      given.folder.write("chain.pem", given.folder.read("good.pem") + given.folder.read("authority.pem"));
  CHECK(refusal({.certificate = chain, .key = given.good.key, .authority = given.authority.file()}) ==
        "accepted");
  CHECK(refusal({.authority = chain}) == "accepted");
  const auto made = tls_context::of_director({.certificate = chain, .key = given.good.key});
  REQUIRE(made);
  CHECK((*made)->digest().size() == 64);
}

TEST_CASE("tls files: missing, empty and damaged ones are named") {
  const papers given;
  const auto none = given.folder.path("none.pem");
  CHECK(refusal({.certificate = none, .key = given.good.key}) ==
        "--tls-cert " + none +
            ": cannot be opened: No such file or directory; accepted: a PEM file of certificates");
  CHECK(
      refusal({.certificate = given.good.certificate, .key = none}) ==
      "--tls-key " + none +
          ": cannot be opened: No such file or directory; accepted: a PEM file with the private key, without "
          "a pass phrase");
  CHECK(refusal({.authority = none}).starts_with("--tls-ca " + none + ": cannot be opened"));
  CHECK(refusal({.authority = given.folder.path("")}).find("Is a directory") != std::string::npos);
  const auto text = given.folder.write("text.pem", "not PEM");
  CHECK(refusal({.authority = text}) ==
        "--tls-ca " + text + ": no certificate in it; accepted: a PEM file of certificates");
  CHECK(refusal({.certificate = given.good.key, .key = given.good.key})
            .starts_with("--tls-cert " + given.good.key + ": no certificate in it"));
  CHECK(refusal({.certificate = given.good.certificate, .key = given.good.certificate})
            .starts_with("--tls-key " + given.good.certificate + ": no private key in it"));
  auto pem = given.folder.read("good.pem");
  auto damaged = pem;
  damaged.replace(damaged.size() / 2, 4, "!!!!");
  const auto half = given.folder.write("half.pem", pem + damaged);
  CHECK(refusal({.certificate = half, .key = given.good.key}) ==
        "--tls-cert " + half + ": its certificate 2 is damaged; accepted: a PEM file of certificates");
  const auto large = given.folder.write("large.pem", std::string(2 << 20, 'x'));
  CHECK(refusal({.authority = large}).starts_with("--tls-ca " + large + ": larger than 1048576 bytes"));
}

TEST_CASE("tls files: a key has to be the certificate's, and nobody else's to read (TL-3)") {
  const papers given;
  const auto other = given.authority.issue("other");
  CHECK(refusal({.certificate = given.good.certificate, .key = other.key}) ==
        "--tls-key " + other.key + ": not the key of --tls-cert " + given.good.certificate +
            "; accepted: the key that this certificate was made for");
  namespace fs = std::filesystem;
  fs::permissions(given.good.key, static_cast<fs::perms>(0644));
  CHECK(refusal({.certificate = given.good.certificate, .key = given.good.key}) ==
        "--tls-key " + given.good.key +
            ": others than its owner can use it (mode 0644); accepted: a key that only its owner can read: "
            "chmod 600 " +
            given.good.key);
  fs::permissions(given.good.key, static_cast<fs::perms>(0660));
  CHECK(refusal({.certificate = given.good.certificate, .key = given.good.key}).find("mode 0660") !=
        std::string::npos);
  fs::permissions(given.good.key, static_cast<fs::perms>(0400));
  CHECK(refusal({.certificate = given.good.certificate, .key = given.good.key}) == "accepted");
}

TEST_CASE("tls files: a key with a pass phrase is refused; nobody is asked for one") {
  const papers given;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key{EVP_EC_gen("P-256"), &EVP_PKEY_free};
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio{BIO_new(BIO_s_mem()), &BIO_free};
  const std::string phrase = "a phrase";
  REQUIRE(PEM_write_bio_PrivateKey(bio.get(), key.get(), EVP_aes_128_cbc(),
                                   reinterpret_cast<const unsigned char*>(phrase.data()),
                                   static_cast<int>(phrase.size()), nullptr, nullptr) == 1);
  char* text = nullptr;
  const auto bytes = BIO_get_mem_data(bio.get(), &text);
  const auto file = given.folder.write("phrase.key", {text, static_cast<std::size_t>(bytes)});
  CHECK(refusal({.certificate = given.good.certificate, .key = file}) ==
        "--tls-key " + file +
            ": protected by a pass phrase; accepted: a PEM file with the private key, without a pass phrase");
}

TEST_CASE("tls files: one's own certificate has to be valid now; a started worker's need not be") {
  const papers given;
  const auto old = given.authority.issue("old", {.until = std::chrono::seconds{-60}});
  const auto said = refusal({.certificate = old.certificate, .key = old.key});
  CHECK(said.starts_with("--tls-cert " + old.certificate + ": expired on 20"));
  CHECK(said.ends_with(" UTC; accepted: a certificate that is valid now"));
  const auto early = given.authority.issue("early", {.from = std::chrono::seconds{600}});
  CHECK(refusal({.certificate = early.certificate, .key = early.key})
            .starts_with("--tls-cert " + early.certificate + ": not valid before 20"));
  CHECK(tls_context::of_joiner({.certificate = old.certificate, .key = old.key, .director = "its digest"}));
}

} // namespace
} // namespace troupe::test
