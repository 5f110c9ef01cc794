#include "duet/transport/tls_session.h"

#include <functional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/transport/tls_authority_test.h"
#include "duet/transport/tls_key_updater_test.h"

namespace duet::transport {
namespace {

using Kind = TlsFailure::Kind;

const TestAuthority& authority() {
  static const TestAuthority made;
  return made;
}

TestCertificate for_server() {
  return {.name = "server", .names = "DNS:here.test,IP:127.0.0.1", .usage = "serverAuth"};
}

std::shared_ptr<const TlsContext> server_context(const TestCertificate& wanted = for_server(),
                                                 std::set<std::string> revoked = {}) {
  const TestIdentity own = authority().issue(wanted);
  return TlsContext::for_server({.certificate = {"server.pem", own.certificate},
                                 .key = {"server.key", own.key},
                                 .clients_ca = {"ca.pem", authority().pem()},
                                 .revoked = std::move(revoked),
                                 .protocols = {"duet-rpc/1", "http/1.1"}});
}

std::shared_ptr<const TlsContext> client_context(const TestCertificate& wanted = {},
                                                 const TestAuthority& issuer = authority()) {
  const TestIdentity own = issuer.issue(wanted);
  return TlsContext::for_client({"client.pem", own.key + own.certificate + authority().pem()});
}

// Made once: keys take time.
std::shared_ptr<const TlsContext> good_server() {
  static const std::shared_ptr<const TlsContext> made = server_context();
  return made;
}

std::shared_ptr<const TlsContext> good_client() {
  static const std::shared_ptr<const TlsContext> made = client_context();
  return made;
}

/// A client and a server, and the wire between them.
struct Ends {
  explicit Ends(std::shared_ptr<const TlsContext> server_side = good_server(),
                std::shared_ptr<const TlsContext> client_side = good_client(), const std::string& host = "here.test",
                const std::string& protocol = "duet-rpc/1")
      : server(TlsSession::server(std::move(server_side))),
        client(TlsSession::client(std::move(client_side), host, protocol)) {}

  /// So many bytes at a time, to and fro, until neither has anything to say.
  void talk(std::size_t portion = 1U << 20U) {
    client->shake_hands();
    while (carry(*client, *server, portion) || carry(*server, *client, portion)) {
    }
  }
  static bool carry(TlsSession& from, TlsSession& to, std::size_t portion) {
    const std::string bytes = from.output().substr(0, portion);
    from.output().erase(0, bytes.size());
    if (bytes.empty()) return false;
    to.receive(bytes);
    to.shake_hands();
    return true;
  }
  static std::string all_of(TlsSession& session) {
    std::string text(1U << 16U, '\0');
    text.resize(session.read(text));
    return text;
  }

  std::unique_ptr<TlsSession> server;
  std::unique_ptr<TlsSession> client;
};

TEST(TlsSessionTest, BothEndsKnowEachOtherAndTalk) {
  Ends ends;
  ends.talk();
  ASSERT_TRUE(ends.server->is_open());
  ASSERT_TRUE(ends.client->is_open());
  EXPECT_EQ(ends.server->peer_certificate().name, "somebody");
  EXPECT_EQ(ends.client->peer_certificate().dns_names, std::vector<std::string>{"here.test"});
  EXPECT_EQ(ends.server->protocol(), "duet-rpc/1");
  EXPECT_EQ(ends.client->write("hello"), 5U);
  ends.talk();
  EXPECT_EQ(Ends::all_of(*ends.server), "hello");
  EXPECT_EQ(ends.server->write("you"), 3U);
  ends.talk();
  EXPECT_EQ(Ends::all_of(*ends.client), "you");
}

TEST(TlsSessionTest, PortionsMakeNoDifference) {
  for (const std::size_t portion : {1U, 2U, 5U, 7U, 100U, 1000U}) {
    Ends ends;
    ends.talk(portion);
    ASSERT_TRUE(ends.server->is_open() && ends.client->is_open()) << portion;
    const std::string text(portion < 100 ? 2'000 : 40'000, 'x');
    ASSERT_EQ(ends.client->write(text), text.size());
    ends.client->end();
    std::string seen;
    while (Ends::carry(*ends.client, *ends.server, portion)) seen += Ends::all_of(*ends.server);
    EXPECT_EQ(seen, text) << portion;
    EXPECT_TRUE(ends.server->is_at_end()) << portion;
  }
}

TEST(TlsSessionTest, WhatComesBehindTheHandshakeIsKept) {
  Ends ends;
  ends.client->shake_hands();
  Ends::carry(*ends.client, *ends.server, 1U << 20U);
  Ends::carry(*ends.server, *ends.client, 1U << 20U);
  ASSERT_TRUE(ends.client->is_open());
  ends.client->write("early");
  Ends::carry(*ends.client, *ends.server, 1U << 20U);
  ASSERT_TRUE(ends.server->is_open());
  EXPECT_TRUE(ends.server->has_more());
  EXPECT_EQ(Ends::all_of(*ends.server), "early");
  EXPECT_FALSE(ends.server->has_more());
}

TEST(TlsSessionTest, ManySmallRecordsAreOneRead) {
  Ends ends;
  ends.talk();
  for (int i = 0; i < 100; ++i) ends.client->write("ping\n");
  ends.server->receive(ends.client->output());
  EXPECT_EQ(Ends::all_of(*ends.server).size(), 500U);
}

TEST(TlsSessionTest, RequestsForNewKeysWithoutDataHaveAnEnd) {
  const auto server = TlsSession::server(good_server());
  TlsKeyUpdater client(good_client());
  for (int i = 0; i < 10 && !server->is_open(); ++i) {
    client.shake_hands();
    server->receive(client.take());
    server->shake_hands();
    client.receive(std::exchange(server->output(), {}));
  }
  ASSERT_TRUE(server->is_open());
  for (int i = 0; i < 3; ++i) {
    client.ask_for_keys(50);
    client.write("x");
    server->receive(client.take());
    EXPECT_EQ(Ends::all_of(*server), "x");
    ASSERT_FALSE(server->failure()) << server->failure()->text;
  }
  EXPECT_FALSE(server->output().empty()) << "they are answered";
  client.ask_for_keys(100);
  server->receive(client.take());
  EXPECT_EQ(Ends::all_of(*server), "");
  ASSERT_TRUE(server->failure());
  EXPECT_EQ(server->failure()->text, "too many records without data");
}

TEST(TlsSessionTest, TheEndOfTheInputIsAFailureUnlessThePeerHasSaidSo) {
  Ends cut;
  cut.talk();
  cut.server->end_of_input();
  ASSERT_TRUE(cut.server->failure());
  EXPECT_EQ(cut.server->failure()->kind, Kind::cut);

  Ends ended;
  ended.talk();
  ended.client->write("last");
  ended.client->end();
  ended.server->receive(ended.client->output());
  EXPECT_EQ(Ends::all_of(*ended.server), "last");
  EXPECT_FALSE(ended.server->has_more());
  EXPECT_TRUE(ended.server->is_at_end());
  ended.server->end_of_input();
  EXPECT_FALSE(ended.server->failure());
  EXPECT_EQ(ended.server->write("answer"), 6U) << "the other direction goes on";
}

TEST(TlsSessionTest, ACutHandshakeIsAFailureWhereverItIsCut) {
  Ends whole;
  whole.client->shake_hands();
  const std::string hello = whole.client->output();
  for (std::size_t size = 0; size < hello.size(); ++size) {
    Ends ends;
    if (size > 0) ends.server->receive(std::string_view(hello).substr(0, size));
    ends.server->shake_hands();
    ASSERT_FALSE(ends.server->failure()) << size;
    ends.server->end_of_input();
    ASSERT_EQ(ends.server->failure()->kind, Kind::cut) << size;
  }
}

TEST(TlsSessionTest, ADamagedByteIsNeverReadAsData) {
  Ends ends;
  ends.talk();
  ends.client->write("secret");
  std::string record = ends.client->output();
  record.back() = static_cast<char>(record.back() ^ 1);
  ends.server->receive(record);
  EXPECT_EQ(Ends::all_of(*ends.server), "");
  ASSERT_TRUE(ends.server->failure());
  EXPECT_EQ(ends.server->failure()->kind, Kind::protocol);
  EXPECT_FALSE(ends.server->output().empty()) << "an alert";
}

TEST(TlsSessionTest, PlainTextGetsAnAlert) {
  for (const std::string text :
       {"GET / HTTP/1.1\r\n\r\n", "{\"jsonrpc\":\"2.0\"}\n", "\x80\x2e", "\x16nonsense that is no record"}) {
    Ends ends;
    ends.server->receive(text);
    ends.server->shake_hands();
    ASSERT_TRUE(ends.server->failure()) << text;
    EXPECT_EQ(ends.server->output().substr(0, 2), std::string("\x15\x03")) << text;
  }
}

TEST(TlsSessionTest, AServerThatSpeaksNoTlsIsToldApart) {
  Ends ends;
  ends.client->shake_hands();
  ends.client->receive("HTTP/1.1 400 Bad Request\r\n\r\n");
  ends.client->shake_hands();
  ASSERT_TRUE(ends.client->failure());
  EXPECT_EQ(ends.client->failure()->kind, Kind::no_tls);
}

struct RefusedClient {
  const char* what;
  std::function<std::shared_ptr<const TlsContext>()> client;
  int alert;
};

// The client hears of it at its first read only.
void expect_alert(const RefusedClient& row, std::shared_ptr<const TlsContext> server = good_server()) {
  Ends ends(std::move(server), row.client());
  ends.talk();
  std::string room(100, ' ');
  ends.client->read(room);
  ASSERT_TRUE(ends.server->failure()) << row.what;
  ASSERT_TRUE(ends.client->failure()) << row.what;
  EXPECT_EQ(ends.client->failure()->kind, Kind::refused) << row.what;
  EXPECT_EQ(alert_name(ends.client->failure()->alert), alert_name(row.alert)) << row.what;
}

TEST(TlsSessionTest, AServerTellsWhyItRefusesACertificate) {
  using std::chrono::hours;
  const TestAuthority other("another authority");
  const RefusedClient rows[] = {
      {"of another authority", [&] { return client_context({}, other); }, 48},
      {"expired", [] { return client_context({.from = hours(-3), .until = hours(-1)}); }, 45},
      {"not valid yet", [] { return client_context({.from = hours(1)}); }, 45},
      {"a small key", [] { return client_context({.rsa_bits = 2040}); }, 42},
  };
  for (const RefusedClient& row : rows) expect_alert(row);
}

TEST(TlsSessionTest, ABrokenSignatureIsToldApartFromAnotherAuthorityOfTheSameName) {
  const TestAuthority namesake;
  expect_alert({"of a namesake", [&] { return client_context({}, namesake); }, 48});
  const TestIdentity own = authority().issue({.names_issuer_key = true});
  std::string der = der_of(*certificates_in({"x", own.certificate}).front());
  der.back() = static_cast<char>(der.back() ^ 1);
  const auto context =
      TlsContext::for_client({"client.pem", TestAuthority::pem_of(*x509_of(der)) + own.key + authority().pem()});
  expect_alert({"broken", [&] { return context; }, 42});
}

TEST(TlsSessionTest, ARevokedCertificateIsRefused) {
  const TestIdentity own = authority().issue({});
  const auto context = TlsContext::for_client({"client.pem", own.certificate + own.key + authority().pem()});
  expect_alert({"revoked", [&] { return context; }, 44}, server_context(for_server(), {context->own().fingerprint}));
}

TEST(TlsSessionTest, OneAuthorityBetweenIsFineAndTwoAreNot) {
  const TestAuthority between = authority().below("between");
  const TestAuthority deeper = between.below("deeper");
  const auto with = [](const TestIdentity& own, const std::string& chain) {
    return TlsContext::for_client({"client.pem", chain + own.certificate + own.key + authority().pem()});
  };
  Ends ends(server_context(), with(between.issue({}), between.pem()));
  ends.talk();
  EXPECT_TRUE(ends.server->is_open());
  EXPECT_EQ(ends.server->peer_chain().size(), 2U);
  expect_alert({"two between", [&] { return with(deeper.issue({}), deeper.pem() + between.pem()); }, 48});
}

TEST(TlsSessionTest, AnUnknownProtocolInsideIsRefused) {
  Ends ends(server_context(), client_context(), "here.test", "h2");
  ends.talk();
  ASSERT_TRUE(ends.client->failure());
  EXPECT_EQ(alert_name(ends.client->failure()->alert), "no_application_protocol");
}

TlsFailure refusal_by_client(const TestCertificate& server, const std::string& host) {
  Ends ends(server_context(server), client_context(), host);
  ends.talk();
  return ends.client->failure().value_or(TlsFailure{.kind = Kind::timeout});
}

TEST(TlsSessionTest, AClientLooksAtTheNamesAndNotAtTheCommonName) {
  using Fault = TlsFailure::Certificate;
  const TlsFailure wrong = refusal_by_client(for_server(), "there.test");
  EXPECT_EQ(wrong.kind, Kind::certificate);
  EXPECT_EQ(wrong.fault, Fault::names);
  EXPECT_EQ(wrong.text, "its certificate is for here.test, 127.0.0.1, and not for there.test");
  EXPECT_EQ(refusal_by_client(for_server(), "server").fault, Fault::names) << "the common name";
  EXPECT_EQ(refusal_by_client(for_server(), "127.0.0.2").fault, Fault::names);
  EXPECT_EQ(refusal_by_client(for_server(), "127.0.0.1").kind, Kind::timeout) << "it is good";
  EXPECT_EQ(refusal_by_client({.names = "DNS:*.here.test", .usage = "serverAuth"}, "a.here.test").kind, Kind::timeout);
  EXPECT_EQ(refusal_by_client({.names = "DNS:*.here.test", .usage = "serverAuth"}, "a.b.here.test").fault,
            Fault::names);
}

TEST(TlsSessionTest, AClientRefusesAServerOfAnotherAuthority) {
  const TestAuthority other("another authority");
  const TestIdentity own = other.issue(for_server());
  const auto context = TlsContext::for_server({.certificate = {"server.pem", own.certificate},
                                               .key = {"server.key", own.key},
                                               .clients_ca = {"ca.pem", authority().pem()},
                                               .protocols = {"duet-rpc/1"}});
  Ends ends(context, client_context());
  ends.talk();
  ASSERT_TRUE(ends.client->failure());
  EXPECT_EQ(ends.client->failure()->fault, TlsFailure::Certificate::authority);
  EXPECT_EQ(ends.client->failure()->text, "its certificate is issued by CN=another authority, which is not trusted");
  EXPECT_TRUE(ends.server->failure()) << "it was told";
}

}  // namespace
}  // namespace duet::transport
