#include "app/client/tls_failure_text.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using transport::TlsCertificate;
using transport::TlsFailure;
using namespace std::chrono_literals;

const FarPlace place{.url = {.host = "build.example"}, .identity = "/x/client.pem", .server_name = "build.example"};

std::string text_of(const TlsFailure& failure, int code = exit_code::failed, const ShownIdentity& identity = {}) {
  const Failure told = failure_of_tls(failure, place, "duet-rpc", identity);
  EXPECT_EQ(told.code(), code) << told.what();
  return told.what();
}

std::string of_certificate(TlsFailure::Certificate fault, const TlsCertificate& theirs = {}) {
  return text_of({.kind = TlsFailure::Kind::certificate, .text = "why", .fault = fault, .peer_certificate = theirs});
}

TEST(TlsFailureText, SaysWhichNamesTheServerHas) {
  TlsCertificate theirs;
  theirs.dns_names = {"a.example", "b"};
  theirs.addresses = {"::1"};
  EXPECT_EQ(of_certificate(TlsFailure::Certificate::names, theirs),
            "the certificate of build.example:7443 is not for build.example: it is for a.example, b, ::1; "
            "--server-name says which of them is meant");
  EXPECT_NE(of_certificate(TlsFailure::Certificate::names).find("no names at all"), std::string::npos);
}

TEST(TlsFailureText, SaysWhoseCertificateItIs) {
  TlsCertificate theirs;
  theirs.subject = "CN=evil\nline";
  theirs.issuer = "CN=Some CA";
  EXPECT_EQ(of_certificate(TlsFailure::Certificate::authority, theirs),
            "the certificate of build.example:7443 is of no CA that /x/client.pem trusts: it is that of "
            "CN=evil line, signed by CN=Some CA");
}

TEST(TlsFailureText, SaysSinceWhenItDoesNotCount) {
  TlsCertificate theirs;
  theirs.not_after = base::UtcTime(24h);
  EXPECT_NE(of_certificate(TlsFailure::Certificate::expired, theirs).find("expired, on 1970-01-02T"),
            std::string::npos);
  EXPECT_NE(of_certificate(TlsFailure::Certificate::not_yet_valid, theirs).find("before 1970-01-01T"),
            std::string::npos);
  EXPECT_NE(of_certificate(TlsFailure::Certificate::other).find("cannot be trusted: why"), std::string::npos);
}

TEST(TlsFailureText, TellsTheReasonInTheAlert) {
  EXPECT_EQ(text_of({.kind = TlsFailure::Kind::refused, .alert = 44}),
            "build.example:7443 refuses the certificate in /x/client.pem: certificate_revoked; "
            "'duet-rpc cert client NAME --role R' on that machine makes another");
  EXPECT_EQ(text_of({.kind = TlsFailure::Kind::refused, .alert = 70}),
            "build.example:7443 refuses the connection: protocol_version");
}

TEST(TlsFailureText, SendsNobodyForAnotherCertificateWhenTheAuthorityHasExpired) {
  const base::UtcTime now = base::system_clock().utc();
  const TlsFailure expired{.kind = TlsFailure::Kind::refused, .alert = 45};
  ShownIdentity identity;
  identity.own.issuer = "CN=old CA";
  identity.own.not_after = now - 1h;
  EXPECT_NE(text_of(expired, exit_code::failed, identity).find("cert client NAME"), std::string::npos);
  identity.own.not_after = now + 24h;
  const std::string unknown = text_of(expired, exit_code::failed, identity);
  EXPECT_EQ(unknown.find("cert client"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("'duet-rpc doctor' on that machine"), std::string::npos) << unknown;
  identity.authorities.resize(1);
  identity.authorities.front().subject = "CN=old CA";
  identity.authorities.front().not_after = base::UtcTime(24h);
  const std::string known = text_of(expired, exit_code::failed, identity);
  EXPECT_NE(known.find("the CA that has expired, CN=old CA, on 1970-01-02T"), std::string::npos) << known;
  EXPECT_NE(known.find("cert init --force"), std::string::npos) << known;
}

TEST(TlsFailureText, WhatMayPassHasACodeOfItsOwn) {
  text_of({.kind = TlsFailure::Kind::timeout}, exit_code::no_answer);
  text_of({.kind = TlsFailure::Kind::cut}, exit_code::no_daemon);
  EXPECT_NE(text_of({.kind = TlsFailure::Kind::no_tls}).find("speaks no TLS"), std::string::npos);
  EXPECT_NE(text_of({.kind = TlsFailure::Kind::protocol, .text = "odd"}).find("odd"), std::string::npos);
}

}  // namespace
}  // namespace duet::app
