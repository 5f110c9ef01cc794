#include "duet/transport/tls_certificate.h"

#include <sys/stat.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "duet/base/utc_text.h"
#include "duet/transport/temporary_folder_test.h"
#include "duet/transport/tls_authority_test.h"

namespace duet::transport {
namespace {

TEST(TlsCertificateTest, SaysWhatIsInIt) {
  const TestAuthority authority("The Authority");
  const auto described = [&](const TestCertificate& wish) {
    return describe(*certificates_in({"x", authority.issue(wish).certificate}).front());
  };
  const TlsCertificate all =
      described({.name = "läptop", .names = "DNS:a.test,DNS:*.b.test,IP:192.0.2.7,IP:2001:db8::7,URI:urn:x"});
  EXPECT_EQ(all.name, "läptop");
  EXPECT_EQ(all.issuer, "CN=The Authority");
  EXPECT_EQ(all.dns_names, (std::vector<std::string>{"a.test", "*.b.test"}));
  EXPECT_EQ(all.addresses, (std::vector<std::string>{"192.0.2.7", "2001:db8::7"}));
  EXPECT_EQ(all.uris, std::vector<std::string>{"urn:x"});
  EXPECT_EQ(all.fingerprint.size(), 64U);
  EXPECT_LT(all.not_before, base::system_clock().utc());
  EXPECT_GT(all.not_after, base::system_clock().utc());
  EXPECT_EQ(described({.name = "", .names = "DNS:x"}).name, "");
  EXPECT_EQ(described({.name = "two\nlines"}).name, "") << "nothing that could be shown";
}

TEST(TlsCertificateTest, DatesThatAUtcTimeCannotTellAreItsEnds) {
  const auto year = [](base::UtcTime time) { return base::utc_text(time).substr(0, 4); };
  const TestAuthority authority;
  const TlsCertificate endless =
      describe(*certificates_in({"x", authority.issue({.until_text = "99991231235959Z"}).certificate}).front());
  EXPECT_EQ(year(endless.not_after), "2262");
  EXPECT_LT(endless.not_before, base::system_clock().utc());
  const TlsCertificate damaged =
      describe(*certificates_in({"x", authority.issue({.until_text = "no date"}).certificate}).front());
  EXPECT_EQ(year(damaged.not_after), "1900") << "it has expired";
}

TEST(TlsCertificateTest, AKeyThatOthersCanReadIsRefused) {
  const TemporaryFolder folder;
  const std::string path = folder.file("key");
  std::ofstream(path) << "x";
  for (const mode_t mode : {0640U, 0604U, 0620U, 0600U}) {
    chmod(path.c_str(), mode);
    const bool is_good = mode == 0600U;
    if (is_good) {
      EXPECT_EQ(read_pem_file(path, true).text, "x");
    } else {
      EXPECT_THROW(read_pem_file(path, true), std::runtime_error) << mode;
    }
    EXPECT_EQ(read_pem_file(path, false).text, "x");
  }
  EXPECT_THROW(read_pem_file(folder.path(), false), std::runtime_error) << "a folder";
  EXPECT_THROW(read_pem_file(path + "2", false), std::runtime_error) << "nothing";
}

}  // namespace
}  // namespace duet::transport
