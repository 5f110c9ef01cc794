#include "task/postgres/store_address.h"

#include <fstream>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"
#include "task/postgres/environment_test.h"

namespace duet::task::postgres {
namespace {

// No home of the developer's, no variable of his.
class StoreAddressTest : public testing::Test {
 protected:
  StoreAddress address(const std::string& store, const StoreAddress::Wishes& wishes = {"build-3"}) {
    auto parsed = StoreAddress::parse(store, wishes);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error());
    return parsed.value_or(StoreAddress());
  }
  std::string error(const std::string& store, const StoreAddress::Wishes& wishes = {"build-3"}) {
    const auto parsed = StoreAddress::parse(store, wishes);
    return parsed ? "" : parsed.error();
  }
  std::string parameter(const std::string& store, const std::string& name) {
    const StoreAddress parsed = address(store);
    const auto found = parsed.parameters().find(name);
    return found == parsed.parameters().end() ? "" : found->second;
  }

  transport::TemporaryFolder folder_;
  Environment home_{"HOME", folder_.path()};
  Environment host_{"PGHOST", std::nullopt};
  Environment service_{"PGSERVICE", std::nullopt};
  Environment mode_{"PGSSLMODE", std::nullopt};
  Environment authorities_{"PGSSLROOTCERT", "root.crt"};
};

TEST_F(StoreAddressTest, TheTextForPeopleHasUserHostsAndDatabase) {
  const StoreAddress two = address("postgresql://duet:secret@db1,db2:5433/work");
  EXPECT_EQ(two.text(), "duet@db1:5432,db2:5433/work");
  EXPECT_TRUE(two.has_password());
  ASSERT_EQ(two.hosts().size(), 2U);
  EXPECT_EQ(two.hosts()[1].name, "db2");
  EXPECT_EQ(two.hosts()[1].port, "5433");
  EXPECT_EQ(address("postgresql://duet@[::1]:7/work").text(), "duet@[::1]:7/work");
  EXPECT_FALSE(address("postgresql://duet@db1/work").has_password());
  EXPECT_TRUE(address("postgresql://duet@db1/work?password=secret").has_password());
  EXPECT_TRUE(address("postgresql://duet@db1/work?sslpassword=secret").has_password());
}

TEST_F(StoreAddressTest, WhatIsNotGivenIsAdded) {
  const std::string store = "postgresql://duet@db1/work";
  EXPECT_EQ(parameter(store, "target_session_attrs"), "read-write");
  EXPECT_EQ(parameter(store, "application_name"), "duet-rpc build-3");
  EXPECT_EQ(parameter(store, "gssencmode"), "disable");
  EXPECT_EQ(parameter(store, "client_encoding"), "UTF8");
  for (const char* name : {"connect_timeout", "keepalives_idle", "tcp_user_timeout"}) {
    EXPECT_NE(parameter(store, name), "") << name;
  }
}

TEST_F(StoreAddressTest, WhatIsGivenStays) {
  const std::string store =
      "postgresql://duet@db1/work?target_session_attrs=any&application_name=mine&gssencmode=prefer&connect_timeout=9"
      "&keepalives_idle=77&tcp_user_timeout=1&client_encoding=LATIN1&channel_binding=require";
  EXPECT_EQ(parameter(store, "target_session_attrs"), "any");
  EXPECT_EQ(parameter(store, "application_name"), "mine");
  EXPECT_EQ(parameter(store, "gssencmode"), "prefer");
  EXPECT_EQ(parameter(store, "connect_timeout"), "9");
  EXPECT_EQ(parameter(store, "keepalives_idle"), "77");
  EXPECT_EQ(parameter(store, "tcp_user_timeout"), "1");
  EXPECT_EQ(parameter(store, "channel_binding"), "require");
  EXPECT_EQ(parameter(store, "client_encoding"), "UTF8") << "the program speaks nothing else";
}

TEST_F(StoreAddressTest, TheEnvironmentCounts) {
  const Environment host("PGHOST", "/tmp/sockets");
  const Environment user("PGUSER", "ann");
  const Environment name("PGAPPNAME", "hers");
  EXPECT_EQ(address("postgresql:///work").text(), "ann@/tmp/sockets:5432/work");
  EXPECT_EQ(parameter("postgresql:///work", "application_name"), "hers");
}

TEST_F(StoreAddressTest, AServiceFileCounts) {
  const std::string file = folder_.file("services");
  std::ofstream(file) << "[queue]\nhost=db7\nport=6000\nuser=ann\ndbname=work\nsslmode=disable\nconnect_timeout=8\n";
  const Environment services("PGSERVICEFILE", file);
  EXPECT_NE(error("postgresql://?service=queue").find("verify-full"), std::string::npos);
  const StoreAddress found = address("postgresql://?service=queue", {"n", true});
  EXPECT_EQ(found.text(), "ann@db7:6000/work");
  EXPECT_EQ(found.parameters().at("connect_timeout"), "8");
  const Environment chosen("PGSERVICE", "queue");
  EXPECT_EQ(address("postgresql://bob@/", {"n", true}).text(), "bob@db7:6000/work");
  EXPECT_NE(error("postgresql://?service=other").find("PGSERVICE"), std::string::npos);
}

TEST_F(StoreAddressTest, AServerElsewhereIsVerifiedInFull) {
  EXPECT_EQ(parameter("postgresql://duet@db1/work", "sslmode"), "verify-full");
  EXPECT_EQ(parameter("postgresql://duet@/work?host=/tmp,db1", "sslmode"), "verify-full");
  EXPECT_EQ(parameter("postgresql://duet@localhost/work?hostaddr=10.1.1.1", "sslmode"), "verify-full");
  EXPECT_FALSE(address("postgresql://duet@db1/work").is_insecure());
  EXPECT_FALSE(address("postgresql://duet@db1/work", {"n", true}).is_insecure());
}

TEST_F(StoreAddressTest, LessIsRefusedUnlessItIsAllowed) {
  for (const std::string mode : {"disable", "allow", "prefer", "require", "verify-ca"}) {
    const std::string store = "postgresql://duet@db1/work?sslmode=" + mode;
    EXPECT_NE(error(store).find("insecure"), std::string::npos) << mode;
    EXPECT_TRUE(address(store, {"n", true}).is_insecure()) << mode;
    const Environment said("PGSSLMODE", mode);
    EXPECT_NE(error("postgresql://duet@db1/work").find("insecure"), std::string::npos) << mode;
  }
}

TEST_F(StoreAddressTest, ThisMachineNeedsNoTls) {
  for (const std::string host : {"", "localhost", "127.0.0.1", "127.9.9.9", "[::1]", "%2Ftmp"}) {
    const StoreAddress here = address("postgresql://duet@" + host + "/work?sslmode=disable");
    EXPECT_FALSE(here.is_insecure()) << host;
  }
  EXPECT_NE(error("postgresql://duet@128.0.0.1/work?sslmode=disable"), "");
  EXPECT_NE(error("postgresql://duet@localhost.example.org/work?sslmode=disable"), "");
}

TEST_F(StoreAddressTest, TheAuthoritiesAreTheSystemsUnlessGiven) {
  const std::string store = "postgresql://duet@db1/work";
  const std::string debian = "/etc/ssl/certs/ca-certificates.crt";
  if (std::filesystem::exists(debian)) {
    const Environment none("PGSSLROOTCERT", std::nullopt);
    EXPECT_EQ(parameter(store, "sslrootcert"), debian);
  }
  EXPECT_EQ(parameter(store + "?sslrootcert=mine.crt", "sslrootcert"), "mine.crt");
  const Environment given("PGSSLROOTCERT", "hers.crt");
  EXPECT_EQ(parameter(store, "sslrootcert"), "hers.crt");
}

TEST_F(StoreAddressTest, AFileOfAuthoritiesWhereLibpqLooksIsTaken) {
  std::filesystem::create_directory(folder_.file(".postgresql"));
  std::ofstream(folder_.file(".postgresql/root.crt")) << "x";
  const Environment none("PGSSLROOTCERT", std::nullopt);
  EXPECT_EQ(parameter("postgresql://duet@db1/work", "sslrootcert"), "");
}

TEST_F(StoreAddressTest, WhatIsNoAddressIsRefused) {
  for (const std::string store : {"", "tasks.db", "postgresql:", "postgresql:/db", "host=db1 dbname=work",
                                  "mysql://db1/work", "postgresql://db1/work?colour=red", "postgresql://db1:port/work",
                                  "postgresql://a@b@c/work", "postgresql://db1/a/b", "postgresql://%zz/"}) {
    EXPECT_NE(error(store), "") << store;
  }
  EXPECT_NE(error(std::string("postgresql://db1/work\0x", 23)), "");
  EXPECT_NE(error("postgresql://h1,h2/work?port=1,2,3"), "");
}

// A password that nothing else here has a piece of.
constexpr std::string_view canary = "QZXJVWKY9753QQZZ";

std::vector<std::string> malformed_addresses() {
  std::vector<std::string> stores;
  const std::string whole(canary);
  // Every letter that means something in an address, at every place in the password.
  for (const char special : std::string("@/?#:%&=[]{} ,;+'\"\\|\n\t!")) {
    for (std::size_t place = 0; place <= whole.size(); ++place) {
      const std::string password = whole.substr(0, place) + special + whole.substr(place);
      for (const std::string tail : {"@db1/work", "@db1:5432/work?sslmode=verify-full", "@[::1]/work", "@[::1/work",
                                     "@", "@db1/work?sslmode=none", "@db1:x/work", "@db1,db2/work?connect_timeout"}) {
        stores.push_back("postgresql://duet:" + password + tail);
        stores.push_back("postgres://:" + password + tail);
        stores.push_back("postgresql:/duet:" + password + tail);
      }
    }
  }
  for (const std::string kind : {"password", "sslpassword", "pasword", "Password"}) {
    stores.push_back("postgresql://duet@db1/work?" + kind + "=" + whole);
    stores.push_back("postgresql://duet@db1/work?" + kind + "=" + whole + "&x");
    stores.push_back(kind + "=" + whole + " host=db1");
  }
  return stores;
}

TEST_F(StoreAddressTest, NoErrorAndNoTextHoldsAPieceOfAPassword) {
  std::size_t refused = 0;
  for (const std::string& store : malformed_addresses()) {
    const auto parsed = StoreAddress::parse(store, {"build-3"});
    if (!parsed) ++refused;
    const std::string shown = parsed ? parsed->text() : parsed.error();
    for (std::size_t piece = 0; piece + 4 <= canary.size(); ++piece) {
      ASSERT_EQ(shown.find(canary.substr(piece, 4)), std::string::npos) << store << "\n" << shown;
    }
  }
  EXPECT_GT(refused, 1000U);
}

}  // namespace
}  // namespace duet::task::postgres
