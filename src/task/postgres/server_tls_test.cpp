// Links over TCP and TLS on loopback: what is verified, and what is refused.

#include <gtest/gtest.h>

#include "duet/transport/tls_authority_test.h"
#include "task/postgres/admin_session.h"
#include "task/postgres/server_fixture_test.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

class ServerTlsTest : public testing::Test {
 public:
  static void TearDownTestSuite() { shared_.reset(); }

 protected:
  void SetUp() override {
    if (!TestServer::programs()) GTEST_SKIP() << "SKIPPED: PostgreSQL is not installed (Debian: postgresql)";
    if (shared_) return;
    shared_ = std::make_unique<TestServer>();
    const auto identity = authority_.issue({.name = "db", .names = "DNS:localhost", .usage = "serverAuth"});
    shared_->listen_on_loopback();
    shared_->set("ssl = on\nssl_cert_file = '" + shared_->keep("server.crt", identity.certificate) +
                 "'\nssl_key_file = '" + shared_->keep("server.key", identity.key) + "'");
    std::ofstream(shared_->data() + "/pg_hba.conf")
        << "local all duet trust\nhostssl all duet 127.0.0.1/32 trust\nhostssl all ann 127.0.0.1/32 scram-sha-256\n";
    shared_->start();
    ASSERT_TRUE(shared_->open()->run("CREATE ROLE ann LOGIN PASSWORD 'word-of-ann'"));
    std::ofstream(root()) << authority_.pem();
  }
  static std::string root() { return shared_->file("root.crt"); }
  static tl::expected<std::unique_ptr<AdminSession>, std::string> open(const std::string& who,
                                                                       const std::string& more) {
    const auto address = StoreAddress::parse(
        "postgresql://" + who + ":" + std::to_string(shared_->port()) + "/postgres?" + more, {"test"});
    if (!address) return tl::unexpected(address.error());
    return AdminSession::open(*address, 60s);
  }
  static std::string error(const std::string& who, const std::string& more) {
    const auto session = open(who, more);
    return session ? "" : session.error();
  }

  inline static std::unique_ptr<TestServer> shared_;
  transport::TestAuthority authority_;
};

TEST_F(ServerTlsTest, AServerThatIsVerifiedIsUsedAndTenMegabytesComeThroughTls) {
  const auto session = open("duet@localhost", "sslmode=verify-full&sslrootcert=" + root());
  ASSERT_TRUE(session) << session.error();
  EXPECT_TRUE((*session)->tls().starts_with("TLSv1.")) << (*session)->tls();
  const std::string text(10'000'000, 'y');
  const Answer answer = (*session)->ask("SELECT $1::text", {text});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->text() == text);
  // Many rows of many sizes: records of TLS and reads of libpq begin at different places.
  const Answer rows = (*session)->run("SELECT repeat('z', n) FROM generate_series(1, 3000) n");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->rows(), 3000U);
}

TEST_F(ServerTlsTest, APasswordIsGivenAndAWrongOneIsInNoError) {
  const std::string more = "sslmode=verify-full&sslrootcert=" + root();
  EXPECT_EQ(error("ann:word-of-ann@localhost", more), "");
  const std::string wrong = error("ann:QZXJVWKY@localhost", more);
  EXPECT_NE(wrong.find("password authentication failed"), std::string::npos) << wrong;
  for (std::size_t i = 0; i + 4 <= 8; ++i)
    EXPECT_EQ(wrong.find(std::string("QZXJVWKY").substr(i, 4)), std::string::npos);
}

TEST_F(ServerTlsTest, AnotherNameAnotherAuthorityAndNoTlsAreRefused) {
  const std::string ours = "sslmode=verify-full&sslrootcert=" + root();
  EXPECT_NE(error("duet@127.0.0.1", ours).find("does not match"), std::string::npos) << error("duet@127.0.0.1", ours);
  const std::string other = shared_->file("other.crt");
  std::ofstream(other) << transport::TestAuthority("another").pem();
  EXPECT_NE(error("duet@localhost", "sslmode=verify-full&sslrootcert=" + other).find("certificate verify failed"),
            std::string::npos);
  EXPECT_NE(error("duet@localhost", "sslmode=disable").find("no pg_hba.conf entry"), std::string::npos);
}

TEST_F(ServerTlsTest, AServerWithoutTlsIsRefusedWhereItMustBeVerified) {
  TestServer plain;
  plain.listen_on_loopback();
  plain.start();
  const auto address = StoreAddress::parse("postgresql://duet@localhost:" + std::to_string(plain.port()) +
                                               "/postgres?sslmode=verify-full&sslrootcert=" + root(),
                                           {"test"});
  const auto session = AdminSession::open(address.value(), 60s);
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().find("does not support SSL"), std::string::npos) << session.error();
}

}  // namespace
}  // namespace duet::task::postgres
