#include "app/certificates/certificate.h"

#include <gtest/gtest.h>

#include "app/certificates/issue.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using Key = CertificateFile::Key;

const base::UtcTime reading_time = std::chrono::system_clock::from_time_t(1'800'000'000);

/// A client's certificate with its CA, made once.
struct Made {
  KeyPair ca = make_authority("box", life_from(reading_time, life_of_authority));
  KeyPair client = make_client(ca, "laptop", "own", life_from(reading_time, life_of_client));
  std::string certificate = pem_of(*client.certificate);
  std::string key = pem_of(*client.key);
  std::string authority = pem_of(*ca.certificate);
};

const Made& made() {
  static const Made all;
  return all;
}

std::string fault_of_file(std::string_view bytes) {
  const auto read = parse_certificate_file(bytes);
  return read ? "" : read.error();
}

TEST(CertificateFile, HasCertificatesInTheirOrderAndMaybeAKey) {
  for (const std::string& text :
       {made().key + made().certificate + made().authority, made().certificate + made().authority + made().key}) {
    const auto read = parse_certificate_file("a comment\n" + text);
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read->certificates.size(), 2U);
    EXPECT_EQ(read_certificate(*read->certificates.front()).value().name, "laptop");
    EXPECT_EQ(read->key, Key::its_own);
  }
  EXPECT_EQ(parse_certificate_file(made().certificate)->key, Key::none);
  EXPECT_EQ(parse_certificate_file(made().authority + made().key)->key, Key::another);
}

TEST(Certificate, HasOneRoleOrNone) {
  const std::string uri(role_uri);
  EXPECT_EQ(role_in({"urn:x", uri + "operate"}), "operate");
  EXPECT_EQ(role_in({uri + "own", uri + "own"}), "own");
  EXPECT_EQ(role_in({uri + "own", uri + "observe"}), "");
  EXPECT_EQ(role_in({uri + "own", uri + "king"}), "");
  EXPECT_EQ(role_in({uri + "king"}), "");
  EXPECT_EQ(role_in({}), "");
}

TEST(CertificateFile, TellsAnEncryptedKeyAndAsksNobody) {
  const std::string encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_EQ(parse_certificate_file(made().certificate + encrypted)->key, Key::encrypted);
}

TEST(CertificateFile, SaysWhatIsWrongWithIt) {
  EXPECT_EQ(fault_of_file(""), "it is empty");
  EXPECT_EQ(fault_of_file("hello"), "it holds no certificate");
  EXPECT_EQ(fault_of_file(std::string(1000, '\0')), "it holds no certificate");
  EXPECT_EQ(fault_of_file(made().key), "it holds a private key and no certificate");
  EXPECT_EQ(fault_of_file("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"),
            "a certificate in it is damaged");
  EXPECT_NE(fault_of_file(pkcs12_of(made().client, {}, "laptop", "secret")).find("PKCS#12"), std::string::npos);
}

TEST(CertificateFile, IsNeverReadWrongWhereverItIsCut) {
  const std::string& whole = made().certificate;
  const std::size_t end = whole.find("-----END CERTIFICATE-----") + 25;
  for (std::size_t cut = 0; cut < end; ++cut) EXPECT_NE(fault_of_file(whole.substr(0, cut)), "") << cut;
  EXPECT_EQ(fault_of_file(whole.substr(0, end)), "");
}

TEST(CertificateFile, WithABitTurnedIsRefusedOrSaysSomethingElse) {
  const auto der = [] {
    unsigned char* bytes = nullptr;
    const int size = transport::openssl().i2d_X509(made().client.certificate.get(), &bytes);
    std::string out(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    transport::openssl().CRYPTO_free(bytes, "", 0);
    return out;
  }();
  ASSERT_EQ(fault_of_file(der), "");
  for (std::size_t at = 0; at < der.size(); ++at) {
    std::string turned = der;
    turned[at] = static_cast<char>(turned[at] ^ 0x10);
    const auto read = parse_certificate_file(turned);
    if (!read) continue;
    EXPECT_FALSE(is_issued_by(*read->certificates.front(), *made().ca.certificate)) << at;
    if (const auto facts = read_certificate(*read->certificates.front())) {
      EXPECT_NE(facts->fingerprint, read_certificate(*made().client.certificate)->fingerprint) << at;
    }
  }
}

TEST(CertificateState, DependsOnTimeAndTheList) {
  const Certificate client = read_certificate(*made().client.certificate).value();
  EXPECT_EQ(state_of(client, false, reading_time), "valid");
  EXPECT_EQ(state_of(client, false, client.begins - 1s), "not yet");
  EXPECT_EQ(state_of(client, false, client.begins), "valid");
  EXPECT_EQ(state_of(client, false, client.ends), "valid");
  EXPECT_EQ(state_of(client, false, client.ends + 1s), "expired");
  EXPECT_EQ(state_of(client, true, client.ends + 1s), "revoked");
}

}  // namespace
}  // namespace duet::app
