#include "duet/transport/tls_context.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/tls_authority_test.h"

namespace duet::transport {
namespace {

using std::chrono::hours;

TestCertificate server_wish() { return {.name = "server", .names = "DNS:here.test", .usage = "serverAuth"}; }

std::string why_no_server(const TestAuthority& authority, const TestIdentity& own, const std::string& ca = "") {
  try {
    TlsContext::for_server({.certificate = {"server.pem", own.certificate},
                            .key = {"server.key", own.key},
                            .clients_ca = {"ca.pem", ca.empty() ? authority.pem() : ca}});
    return "";
  } catch (const std::runtime_error& fault) {
    return fault.what();
  }
}

std::string why_no_client(const std::string& identity) {
  try {
    TlsContext::for_client({"client.pem", identity});
    return "";
  } catch (const std::runtime_error& fault) {
    return fault.what();
  }
}

TEST(TlsContextTest, AServerNeedsACertificateItsKeyAndAnAuthority) {
  const TestAuthority authority;
  const TestIdentity own = authority.issue(server_wish());
  const TestIdentity other = authority.issue(server_wish());
  EXPECT_EQ(why_no_server(authority, own), "");
  EXPECT_EQ(why_no_server(authority, {"", own.key}), "server.pem: there is no certificate in it");
  EXPECT_EQ(why_no_server(authority, {own.certificate, ""}), "server.key: there is no key in it");
  EXPECT_EQ(why_no_server(authority, {own.certificate, own.key + other.key}),
            "server.key: there is more than one key in it");
  EXPECT_EQ(why_no_server(authority, {own.certificate, other.key}),
            "server.key: this key does not belong to the certificate in server.pem");
  EXPECT_EQ(why_no_server(authority, own, own.key), "ca.pem: there is no certificate in it");
  EXPECT_EQ(why_no_server(authority, own, own.certificate),
            "ca.pem: the certificate of CN=server in it is none of an authority");
}

TEST(TlsContextTest, OneThatClientsWouldRefuseIsRefusedHere) {
  const TestAuthority authority;
  const auto why = [&](const TestCertificate& wish) { return why_no_server(authority, authority.issue(wish)); };
  EXPECT_NE(why({.usage = "serverAuth", .from = hours(-3), .until = hours(-1)}).find("has expired"), std::string::npos);
  EXPECT_NE(why({.usage = "serverAuth", .from = hours(1)}).find("not valid yet"), std::string::npos);
  EXPECT_EQ(why({.usage = "clientAuth"}), "server.pem: this certificate is not for servers");
  EXPECT_NE(why({.usage = "serverAuth", .rsa_bits = 1024}).find("key too small"), std::string::npos);
}

TEST(TlsContextTest, AnIdentityHasAllThreeInAnyOrder) {
  const TestAuthority authority;
  const TestIdentity own = authority.issue({});
  EXPECT_EQ(why_no_client(own.key + own.certificate + authority.pem()), "");
  EXPECT_EQ(why_no_client("some text\n" + authority.pem() + own.certificate + own.key), "");
  EXPECT_EQ(why_no_client(own.key + own.certificate),
            "client.pem: the certificate of the authority to trust is not in it");
  EXPECT_EQ(why_no_client(own.certificate + authority.pem()), "client.pem: there is no key in it");
  EXPECT_EQ(why_no_client(own.key + authority.pem()),
            "client.pem: the key and the certificate in it do not belong together");
  EXPECT_EQ(why_no_client(""), "client.pem: there is no certificate in it");
}

TEST(TlsContextTest, WhatIsDamagedSaysSo) {
  const TestAuthority authority;
  const TestIdentity own = authority.issue({});
  const std::string cut = own.certificate.substr(0, own.certificate.size() / 2);
  EXPECT_NE(why_no_client(own.key + cut).find("damaged PEM"), std::string::npos);
  EXPECT_NE(why_no_client("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").find("cannot be read"),
            std::string::npos);
  EXPECT_NE(why_no_client(own.certificate + authority.pem() +
                          "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
                .find("is encrypted"),
            std::string::npos);
}

TEST(TlsContextTest, WhoWasLetInCanBeJudgedAgain) {
  const TestAuthority authority;
  const TestAuthority other("other");
  const TestIdentity own = authority.issue(server_wish());
  const auto server = [&](std::set<std::string> revoked) {
    return TlsContext::for_server({.certificate = {"server.pem", own.certificate},
                                   .key = {"server.key", own.key},
                                   .clients_ca = {"ca.pem", authority.pem()},
                                   .revoked = std::move(revoked)});
  };
  const auto der = [](const std::string& pem) { return der_of(*certificates_in({"x", pem}).front()); };
  const std::string good = der(authority.issue({}).certificate);
  EXPECT_EQ(server({})->refusal_of({good}), std::nullopt);
  EXPECT_EQ(server({fingerprint_of(*x509_of(good))})->refusal_of({good}), "certificate revoked");
  EXPECT_EQ(server({fingerprint_of(*certificates_in({"x", authority.pem()}).front())})->refusal_of({good}),
            "certificate revoked")
      << "and so is who is below it";
  EXPECT_TRUE(server({})->refusal_of({der(other.issue({}).certificate)}));
  EXPECT_TRUE(server({})->refusal_of({der(own.certificate)})) << "a server's";
  EXPECT_TRUE(server({})->refusal_of({}));
  const TestAuthority between = authority.below("between");
  const std::string far = der(between.issue({}).certificate);
  EXPECT_EQ(server({})->refusal_of({far, der(between.pem())}), std::nullopt);
  EXPECT_TRUE(server({})->refusal_of({far}));
}

}  // namespace
}  // namespace duet::transport
