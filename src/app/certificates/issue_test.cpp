#include "app/certificates/issue.h"

#include <set>

#include <gtest/gtest.h>

#include "app/certificates/certificate.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::days;
using Words = std::vector<std::string>;

const base::UtcTime issue_time = std::chrono::system_clock::from_time_t(1'800'000'000);

Certificate facts_of_made(const KeyPair& pair) { return read_certificate(*pair.certificate).value(); }

/// A CA for all tests of it; making a key costs time.
const KeyPair& authority() {
  static const KeyPair made = make_authority("box", life_from(issue_time, life_of_authority));
  return made;
}

TEST(Issue, AnAuthoritySignsItself) {
  const Certificate ca = facts_of_made(authority());
  EXPECT_TRUE(ca.name.starts_with("duet-rpc CA box 2027-01-15 ")) << ca.name;
  EXPECT_EQ(ca.key, "EC P-256");
  EXPECT_EQ(kind_of(ca), "ca");
  EXPECT_EQ(ca.issuer, ca.subject);
  EXPECT_EQ(ca.begins, issue_time - 1h);
  EXPECT_EQ(ca.ends, issue_time + days(3652));
  EXPECT_TRUE(is_issued_by(*authority().certificate, *authority().certificate));
}

TEST(Issue, ANewAuthorityHasAnotherName) {
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) names.insert(facts_of_made(make_authority("box", life_from(issue_time, days(1)))).name);
  EXPECT_GT(names.size(), 1U);
}

TEST(Issue, AMachineWithALongNameGetsAnAuthority) {
  const KeyPair made = make_authority(std::string(250, 'x'), life_from(issue_time, days(1)));
  EXPECT_EQ(facts_of_made(made).name.size(), 64U);
}

TEST(Issue, AServerIsKnownByItsNames) {
  const Words hosts{"box.example.net", "*.example.net", "192.0.2.7", "::1"};
  const KeyPair made = make_server(authority(), hosts, life_from(issue_time, life_of_server));
  const Certificate server = facts_of_made(made);
  EXPECT_EQ(server.name, "box.example.net");
  EXPECT_EQ(server.hosts, hosts);
  EXPECT_EQ(server.role, "");
  EXPECT_EQ(kind_of(server), "server");
  EXPECT_EQ(server.ends, issue_time + days(397));
  EXPECT_EQ(server.issuer, facts_of_made(authority()).subject);
  EXPECT_TRUE(is_issued_by(*made.certificate, *authority().certificate));
}

TEST(Issue, AServerWithALongNameHasAnotherCommonName) {
  const std::string label(63, 'a');
  const std::string host = label + "." + label;
  EXPECT_EQ(facts_of_made(make_server(authority(), {host}, life_from(issue_time, days(1)))).name, "duet-rpc");
  EXPECT_EQ(facts_of_made(make_server(authority(), {host, "b"}, life_from(issue_time, days(1)))).name, "b");
}

TEST(Issue, AClientHasItsRoleInside) {
  const Certificate client =
      facts_of_made(make_client(authority(), "laptop", "operate", life_from(issue_time, days(30))));
  EXPECT_EQ(client.name, "laptop");
  EXPECT_EQ(client.role, "operate");
  EXPECT_TRUE(client.hosts.empty());
  EXPECT_TRUE(client.others.empty());
  EXPECT_EQ(kind_of(client), "client");
  EXPECT_EQ(client.ends, issue_time + days(30));
}

TEST(Issue, NothingIsGoodForLongerThanItsAuthority) {
  const KeyPair brief = make_authority("box", life_from(issue_time, days(10)));
  EXPECT_EQ(facts_of_made(make_client(brief, "laptop", "own", life_from(issue_time, days(365)))).ends,
            issue_time + days(10));
}

TEST(Issue, SerialsAreLongAndDiffer) {
  std::set<std::string> serials;
  for (int i = 0; i < 20; ++i) {
    const Certificate made = facts_of_made(make_client(authority(), "laptop", "own", life_from(issue_time, days(1))));
    EXPECT_EQ(made.serial.size(), 32U) << made.serial;
    serials.insert(made.serial);
  }
  EXPECT_EQ(serials.size(), 20U);
}

TEST(Issue, AnotherAuthorityOfTheSameNameHasNotSignedIt) {
  const KeyPair other = make_authority("box", life_from(issue_time, life_of_authority));
  const KeyPair made = make_client(authority(), "laptop", "own", life_from(issue_time, days(1)));
  EXPECT_FALSE(is_issued_by(*made.certificate, *other.certificate));
}

TEST(Issue, KeysOfOtherKindsCanSign) {
  for (const char* const kind : {"ED25519", "RSA"}) {
    KeyPair ca = make_authority("box", life_from(issue_time, days(10)));
    const auto& openssl = transport::openssl();
    ca.key.reset(kind == std::string("RSA") ? openssl.EVP_PKEY_Q_keygen(nullptr, nullptr, kind, std::size_t{2048})
                                            : openssl.EVP_PKEY_Q_keygen(nullptr, nullptr, kind));
    ASSERT_EQ(openssl.X509_set_pubkey(ca.certificate.get(), ca.key.get()), 1);
    const KeyPair made = make_client(ca, "laptop", "own", life_from(issue_time, days(1)));
    EXPECT_EQ(openssl.X509_verify(made.certificate.get(), ca.key.get()), 1) << kind;
  }
}

TEST(Issue, TheKeyComesBackFromItsText) {
  const KeyOwner key = key_in(pem_of(*authority().key));
  ASSERT_TRUE(key);
  EXPECT_EQ(transport::openssl().X509_check_private_key(authority().certificate.get(), key.get()), 1);
}

}  // namespace
}  // namespace duet::app
