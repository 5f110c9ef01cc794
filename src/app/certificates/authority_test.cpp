#include "app/certificates/authority.h"

#include <gtest/gtest.h>

#include "app/certificates/issue.h"
#include "app/certificates/tls_folder.h"
#include "app/project/failure.h"
#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

using std::chrono::days;

const base::UtcTime signing_time = std::chrono::system_clock::from_time_t(1'800'000'000);

/// A folder with a CA.
class AuthorityTest : public testing::Test {
 protected:
  AuthorityTest() { put("ca", ca_); }

  void put(const std::string& name, const KeyPair& pair) {
    TlsFolderHold(folder_).replace_together(
        {{name + ".key", pem_of(*pair.key)}, {name + ".pem", pem_of(*pair.certificate)}});
  }
  void put(const std::string& name, const std::string& text) { TlsFolderHold(folder_).replace("", {name, text}); }
  Certificate issue(const KeyPair& ca, const std::string& name) {
    const KeyPair made = make_client(ca, name, "own", life_from(signing_time, days(9)));
    Certificate facts = read_certificate(*made.certificate).value();
    TlsFolderHold(folder_).replace("issued", {facts.serial + ".pem", pem_of(*made.certificate)});
    return facts;
  }
  std::string refusal(base::UtcTime now = signing_time) const {
    try {
      load_authority(folder_, now);
      return "";
    } catch (const Failure& failure) {
      return failure.what();
    }
  }
  bool refuses(const std::string& word, base::UtcTime now = signing_time) const {
    return refusal(now).find(word) != std::string::npos;
  }

  TemporaryProject place_;
  std::string folder_ = place_.path() / "tls";
  KeyPair ca_ = make_authority("box", life_from(signing_time, days(10)));
};

TEST_F(AuthorityTest, SignsWithTheCertificateOfItsKey) {
  const KeyPair other = make_authority("other", life_from(signing_time, days(10)));
  put("ca.pem", pem_of(*other.certificate) + pem_of(*ca_.certificate));
  const Authority read = load_authority(folder_, signing_time);
  EXPECT_EQ(read.certificates.size(), 2U);
  EXPECT_TRUE(read_certificate(*read.signing.certificate)->name.starts_with("duet-rpc CA box "));
}

TEST_F(AuthorityTest, OfSeveralCertificatesOfItsKeyAValidOneSigns) {
  KeyPair renewed = make_authority("renewed", life_from(signing_time, days(90)));
  ASSERT_EQ(transport::openssl().X509_set_pubkey(renewed.certificate.get(), ca_.key.get()), 1);
  put("ca.pem", pem_of(*ca_.certificate) + pem_of(*renewed.certificate));
  const Authority read = load_authority(folder_, signing_time + days(20));
  EXPECT_TRUE(read_certificate(*read.signing.certificate)->name.starts_with("duet-rpc CA renewed "));
}

TEST_F(AuthorityTest, RefusesToSignWithWhatCannot) {
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(refuses("has expired on 2027-01-25", signing_time + days(11)));
  EXPECT_TRUE(refuses("is not valid before 2027-01-15", signing_time - days(1)));
  put("ca.key", pem_of(*make_authority("box", life_from(signing_time, days(1))).key));
  EXPECT_TRUE(refuses("is not the key of"));
  put("ca.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n");
  EXPECT_TRUE(refuses("has a password"));
  put("ca.key", "nonsense");
  EXPECT_TRUE(refuses("holds no private key"));
  std::filesystem::remove(folder_ + "/ca.key");
  EXPECT_TRUE(refuses("there is no " + folder_ + "/ca.key"));
  put("ca", make_client(ca_, "laptop", "own", life_from(signing_time, days(1))));
  EXPECT_TRUE(refuses("not that of a CA"));
  put("ca.pem", "nonsense");
  EXPECT_TRUE(refuses("holds no certificate"));
  std::filesystem::remove(folder_ + "/ca.pem");
  EXPECT_TRUE(refuses("'duet-rpc cert init' makes one"));
}

TEST_F(AuthorityTest, HoldingsAreWhatThePresentCasHaveSigned) {
  const KeyPair old = make_authority("old", life_from(signing_time, days(10)));
  issue(ca_, "laptop");
  issue(ca_, "desk");
  issue(ca_, "laptop");
  issue(old, "phone");
  put("server", make_server(ca_, {"box"}, life_from(signing_time, days(1))));
  TemporaryProject::write(folder_ + "/issued/README", "not one of ours");
  Holdings holdings = read_holdings(folder_);
  ASSERT_EQ(holdings.clients.size(), 3U);
  EXPECT_EQ(holdings.clients.front().name, "desk");
  EXPECT_EQ(holdings.clients_called("laptop").size(), 2U);
  EXPECT_TRUE(holdings.clients_called("phone").empty());
  EXPECT_EQ(holdings.server->name, "box");
  put("ca.pem", pem_of(*ca_.certificate) + pem_of(*old.certificate));
  EXPECT_EQ(read_holdings(folder_).clients_called("phone").size(), 1U);
}

TEST_F(AuthorityTest, HoldingsAreEmptyWithoutAFolder) {
  const Holdings none = read_holdings(folder_ + "/nowhere");
  EXPECT_TRUE(none.authorities.empty());
  EXPECT_FALSE(none.server);
  EXPECT_TRUE(none.clients.empty());
}

TEST_F(AuthorityTest, DamagedFilesAreNotedAndHideNoOthers) {
  issue(ca_, "laptop");
  EXPECT_TRUE(read_holdings(folder_).notes.empty());
  put("server.pem", "nonsense");
  TlsFolderHold(folder_).replace("issued", {"1.pem", "nonsense"});
  std::filesystem::create_directory(folder_ + "/issued/2.pem");
  const Holdings holdings = read_holdings(folder_);
  EXPECT_EQ(holdings.clients_called("laptop").size(), 1U);
  EXPECT_FALSE(holdings.server);
  ASSERT_EQ(holdings.notes.size(), 3U);
  EXPECT_EQ(holdings.notes.front(), folder_ + "/server.pem holds no certificate");
  put("ca.pem", "nonsense");
  EXPECT_THROW(read_holdings(folder_), Failure);
}

TEST_F(AuthorityTest, TheListOfRevokedOnesMayBeElsewhere) {
  const std::string list = place_.path() / "list";
  TemporaryProject::write(list, std::string(64, 'a'));
  EXPECT_TRUE(read_holdings(folder_).revoked.fingerprints.empty());
  EXPECT_EQ(read_holdings(folder_, list).revoked.fingerprints.size(), 1U);
}

}  // namespace
}  // namespace duet::app
