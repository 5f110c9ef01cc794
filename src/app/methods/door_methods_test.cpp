#include "app/methods/door_methods.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "app/doors/page.h"
#include "app/doors/roles.h"
#include "duet/base/fd.h"
#include "duet/base/log_tape_test.h"
#include "duet/peer/connection.h"
#include "duet/transport/memory.h"
#include "duet/transport/temporary_folder_test.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using boost::json::value;

constexpr base::UtcTime now{1'700'000'000s};

struct DoorMethods : testing::Test {
  DoorMethods() { connect(std::nullopt); }

  /// A connection through a door, or without an admission.
  void connect(std::optional<peer::Admission> admission) {
    client.reset();
    server.reset();
    peer::Peer peer{.pid = getpid()};
    if (admission) peer.admission = std::make_shared<const peer::Admission>(std::move(*admission));
    auto [ours, theirs] = transport::memory_pair(loop);
    server = std::make_unique<peer::Connection>(loop, std::move(ours), peer::Protocol::json_lines(), methods,
                                                tape.log(), peer::ConnectionEvents{}, peer);
    client = std::make_unique<peer::Connection>(loop, std::move(theirs), peer::Protocol::json_lines_client(), none,
                                                tape.log());
    server->open();
    client->open();
  }
  void add(std::function<HttpOpened()> open_http = {}) {
    DoorActions actions{.tokens = tokens, .codes = codes, .project = "/project"};
    actions.http_url = [this] { return url; };
    actions.open_http = std::move(open_http);
    add_door_methods(methods, clock, actions);
    methods.set_guard(door_guard(tape.log()));
  }
  peer::Outcome ask(std::string_view method, std::string_view params = {}) {
    std::optional<peer::Outcome> result;
    client->call(method, rpc::Json::view(params), 10s, [&](peer::Outcome outcome) { result = std::move(outcome); });
    for (int i = 0; i < 100 && !result; ++i) loop.turn(loop.now());
    EXPECT_TRUE(result) << method;
    return result.value_or(peer::Outcome{});
  }
  value result(std::string_view method, std::string_view params = {}) {
    const peer::Outcome outcome = ask(method, params);
    EXPECT_FALSE(outcome.error) << outcome.error->message() << outcome.error->data();
    return outcome.error ? value(boost::json::object()) : boost::json::parse(outcome.result);
  }
  std::string refusal(std::string_view method, std::string_view params = {}) {
    const peer::Outcome outcome = ask(method, params);
    return outcome.error ? std::to_string(outcome.error->code()) + ' ' + outcome.error->data() : outcome.result;
  }
  std::string text(const value& object, std::string_view member) {
    const value* const found = object.as_object().if_contains(member);
    return found != nullptr ? std::string(found->as_string()) : "none";
  }

  transport::TemporaryFolder place;
  base::Fd folder{open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  base::VirtualClock clock{now};
  transport::Loop loop{clock};
  base::LogTape tape{base::Level::info};
  Tokens tokens{folder.get(), "here", {}};
  LoginCodes codes;
  std::optional<std::string> url;
  peer::Methods methods;
  peer::Methods none;
  std::unique_ptr<peer::Connection> server;
  std::unique_ptr<peer::Connection> client;
};

TEST_F(DoorMethods, TheUnixSocketIsTheOwners) {
  add();
  const value info = result("session.info");
  EXPECT_EQ(text(info, "door"), "unix");
  EXPECT_EQ(text(info, "role"), "own");
  EXPECT_EQ(text(info, "project"), "/project");
  EXPECT_EQ(text(info, "version"), kVersion);
  EXPECT_EQ(text(info, "expiresAt"), "none");
  EXPECT_EQ(text(info, "assets"), page_version());
}

TEST_F(DoorMethods, ASessionIsToldAsWhatItWasLetIn) {
  add();
  connect(peer::Admission{.door = "http", .name = "browser-3", .role = "observe", .expires = now + 1h});
  const value info = result("session.info");
  EXPECT_EQ(text(info, "door"), "http");
  EXPECT_EQ(text(info, "name"), "browser-3");
  EXPECT_EQ(text(info, "role"), "observe");
  EXPECT_EQ(text(info, "expiresAt"), "2023-11-14T23:13:20.000Z");
}

TEST_F(DoorMethods, ATokenIsMadeForNinetyDaysWithAllRights) {
  add();
  const value made = result("token.create", R"({"name":"ci"})");
  EXPECT_EQ(text(made, "name"), "ci");
  EXPECT_EQ(text(made, "role"), "own");
  EXPECT_EQ(text(made, "expiresAt"), "2024-02-12T22:13:20.000Z");
  const auto who = tokens.find(text(made, "token"), now);
  ASSERT_TRUE(who);
  EXPECT_EQ(who->expires, now + 24h * 90);
}

TEST_F(DoorMethods, ATokenHasTheRoleAndTheEndThatAreWanted) {
  add();
  const value made = result("token.create", R"({"name":"ci","role":"observe","expiresSeconds":1.5})");
  EXPECT_EQ(text(made, "role"), "observe");
  EXPECT_EQ(text(made, "expiresAt"), "2023-11-14T22:13:21.500Z");
  EXPECT_EQ(text(result("token.create", R"(["ever","operate",0])"), "expiresAt"), "none");
  EXPECT_EQ(refusal("token.create", R"({"name":"x","expiresSeconds":-1})"),
            R"(-32602 {"param":"expiresSeconds","expected":"number from 0 on","received":"number"})");
  EXPECT_EQ(refusal("token.create", R"({"name":"x","role":"root"})").substr(0, 6), "-32602");
  EXPECT_EQ(refusal("token.create", R"({"name":"ci"})"),
            R"(-32602 {"param":"name","expected":"a name that no token has","received":"ci"})");
  EXPECT_EQ(refusal("token.create").substr(0, 6), "-32602");
}

TEST_F(DoorMethods, TokensAreListedAndRevoked) {
  add();
  const std::string token = text(result("token.create", R"({"name":"a"})"), "token");
  result("token.create", R"({"name":"b","role":"operate","expiresSeconds":0})");
  const value list = result("token.list");
  ASSERT_EQ(list.as_array().size(), 2U);
  EXPECT_EQ(boost::json::serialize(list.at(1)),
            R"({"name":"b","role":"operate","browser":false,"createdAt":"2023-11-14T22:13:20.000Z"})");
  EXPECT_EQ(boost::json::serialize(result("token.revoke", R"({"name":"a"})")), R"({"revoked":["a"]})");
  EXPECT_FALSE(tokens.find(token, now));
  EXPECT_EQ(refusal("token.revoke", R"({"name":"a"})"),
            R"(-32602 {"param":"name","expected":"the name of a token","received":"another"})");
  codes.add("code", "own", now);
  EXPECT_EQ(boost::json::serialize(result("token.revoke")), R"({"revoked":["b"]})");
  EXPECT_EQ(boost::json::serialize(result("token.list")), "[]");
  EXPECT_TRUE(std::holds_alternative<LoginCodes::Wrong>(codes.look_at("code", now)));
}

TEST_F(DoorMethods, ALoginCodeIsMadeAndKnowsWhereTheDoorIs) {
  add();
  const value shut = result("login.create", R"({"role":"observe"})");
  EXPECT_EQ(text(shut, "code").size(), 22U);
  EXPECT_EQ(text(shut, "expiresAt"), "2023-11-14T22:18:20.000Z");
  EXPECT_EQ(text(shut, "url"), "none");
  EXPECT_EQ(std::get<LoginCodes::Good>(codes.look_at(text(shut, "code"), now)).role, "observe");
  url = "http://127.0.0.1:8123";
  const value open = result("login.create");
  EXPECT_EQ(text(open, "url"), "http://127.0.0.1:8123/#login=" + text(open, "code"));
  EXPECT_EQ(std::get<LoginCodes::Good>(codes.look_at(text(open, "code"), now)).role, "own");
}

TEST_F(DoorMethods, NobodyFarMayMakeTokensWhateverHisRole) {
  add([] { return HttpOpened{"http://127.0.0.1:1"}; });
  connect(peer::Admission{.door = "tls", .name = "laptop", .role = "own"});
  for (const char* const method : {"login.create", "token.create", "token.list", "token.revoke", "http.open"}) {
    EXPECT_EQ(refusal(method), std::string(R"(-32005 {"method":")") + method + R"(","needs":"unix","role":"own"})");
  }
}

TEST_F(DoorMethods, OpeningTheDoorIsTheDoorsOwn) {
  add();
  EXPECT_EQ(refusal("http.open"), "-32601 ");
  peer::Methods others;
  DoorActions actions{.tokens = tokens, .codes = codes, .project = "/project"};
  actions.open_http = [] { return HttpOpened{"http://127.0.0.1:8123"}; };
  add_door_methods(others, clock, actions);
  ASSERT_NE(others.find("http.open"), nullptr);
  EXPECT_EQ(others.find("http.open")->needs, "unix");
}

TEST_F(DoorMethods, ADamagedFileIsToldToWhoAsks) {
  std::ofstream(place.file("tokens")) << "nonsense";
  Tokens damaged(folder.get(), "here", {});
  add_door_methods(methods, clock, {.tokens = damaged, .codes = codes, .project = "/project"});
  for (const char* const method : {"token.list", "token.create"}) {
    const peer::Outcome outcome = ask(method, R"({"name":"x"})");
    ASSERT_TRUE(outcome.error) << method;
    EXPECT_EQ(outcome.error->code(), -32003);
    EXPECT_NE(outcome.error->message().find("here/tokens is not used"), std::string::npos);
  }
  EXPECT_EQ(boost::json::serialize(result("token.revoke")), R"({"revoked":[]})");
  EXPECT_EQ(boost::json::serialize(result("token.list")), "[]");
}

}  // namespace
}  // namespace duet::app
