#include "app/settings/door_settings.h"

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "app/settings/settings.h"

namespace duet::app {
namespace {

const std::string print(64, 'a');

std::variant<Settings, SettingsError> parsed(const std::string& text, bool of_project = false, bool trusted = true) {
  return parse_settings(std::vector<SettingsText>{{"file", text, of_project, trusted}});
}

TlsSettings tls_of(const std::string& text) {
  const auto read = parsed(text);
  const auto* const error = std::get_if<SettingsError>(&read);
  EXPECT_EQ(error, nullptr) << (error == nullptr ? "" : error->text);
  return error == nullptr ? std::get<Settings>(read).tls : TlsSettings();
}

std::string fault_of(const std::string& text, bool of_project = false, bool trusted = true) {
  const auto read = parsed(text, of_project, trusted);
  const auto* const error = std::get_if<SettingsError>(&read);
  return error == nullptr ? "" : error->text;
}

TEST(TlsSettingsTest, HaveTheirDefaults) {
  const TlsSettings tls = tls_of("");
  EXPECT_FALSE(tls.listen);
  EXPECT_EQ(tls.certificate + ' ' + tls.key + ' ' + tls.clients_ca + ' ' + tls.revoked,
            "server.pem server.key ca.pem revoked");
  EXPECT_EQ(tls.max_connections, 256U);
}

TEST(TlsSettingsTest, AreRead) {
  const TlsSettings tls = tls_of(
      "[tls]\nlisten = '[::]:7443'\ncertificate = '/x/y.pem'\nmax_connections = 7\n"
      "[tls.roles]\nlaptop = 'own'\n'sha256:" +
      std::string(64, 'A') + "' = 'observe'");
  EXPECT_EQ(tls.listen->text(), "[::]:7443");
  EXPECT_EQ(tls.certificate, "/x/y.pem");
  EXPECT_EQ(tls.max_connections, 7U);
  EXPECT_EQ(tls.roles, (std::map<std::string, std::string>{{"laptop", "own"}, {"sha256:" + print, "observe"}}));
  EXPECT_FALSE(tls_of("[tls]\nlisten = 'off'").listen);
}

TEST(TlsSettingsTest, FaultsAreTold) {
  EXPECT_EQ(fault_of("[tls]\nlisten = 'here'"),
            "file:2:10: tls.listen is 'here': it must be 'off', or an address with a port such as 0.0.0.0:7443");
  EXPECT_EQ(fault_of("[tls.roles]\nlaptop = 'king'"),
            "file:2:10: tls.roles.laptop is 'king': it must be 'observe', 'operate' or 'own'");
  EXPECT_NE(fault_of("[tls.roles]\n'sha256:12' = 'own'").find("is no SHA-256"), std::string::npos);
  EXPECT_NE(fault_of("[tls]\nroles = 1").find("a table with a role for each certificate"), std::string::npos);
  EXPECT_NE(fault_of("[tls]\nport = 1"), "");
}

TEST(TlsSettingsTest, OfAProjectAreRefusedWhetherItIsTrustedOrNot) {
  for (const bool trusted : {true, false}) {
    EXPECT_TRUE(
        fault_of("\n[tls]\nlisten = 'off'", true, trusted).starts_with("file:2:1: [tls] is for your own settings"))
        << trusted;
  }
}

TEST(TlsSettingsTest, AFingerprintHasSeveralSpellings) {
  std::string with_colons;
  for (int i = 0; i < 32; ++i) with_colons += i == 0 ? "AA" : ":AA";
  EXPECT_EQ(fingerprint_in(print), print);
  EXPECT_EQ(fingerprint_in(with_colons), print);
  EXPECT_EQ(fingerprint_in("sha256:" + with_colons), print);
  EXPECT_EQ(fingerprint_in("SHA256:" + with_colons), print);
  for (const std::string& wrong : {std::string(), print + "a", print.substr(1), "g" + print.substr(1), "x:" + print,
                                   ":" + print, print.substr(0, 63) + ":"}) {
    EXPECT_EQ(fingerprint_in(wrong), "") << wrong;
  }
}

TEST(TlsSettingsTest, TheirFilesStandBesideTheUsersOwnSettings) {
  EXPECT_EQ(tls_folder({.user = "/users/x/duet-rpc/config.toml"}), "/users/x/duet-rpc/tls");
  EXPECT_EQ(tls_folder({.only = "/etc/some.toml", .user = "/users/x/config.toml"}), "/etc/tls");
  EXPECT_EQ(tls_folder({}), "");
}

}  // namespace
}  // namespace duet::app
