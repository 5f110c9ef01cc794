#include "app/client/far_place.h"

#include <cstdlib>
#include <map>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "app/project/failure.h"

namespace duet::app {
namespace {

/// The environment of a test, which is as it was before when that ends.
class FarPlaceTest : public testing::Test {
 protected:
  FarPlaceTest() {
    for (const char* const name : {"DUET_RPC_CONNECT", "DUET_RPC_IDENTITY", "DUET_RPC_CONFIG", "XDG_CONFIG_HOME"}) {
      const char* const value = std::getenv(name);
      before_[name] = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      unsetenv(name);
    }
  }
  ~FarPlaceTest() override {
    for (const auto& [name, value] : before_) value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }

  static std::optional<FarPlace> place(const std::vector<const char*>& words) {
    const auto parsed = parse_command_line(words);
    return far_place(std::get<CommandLine>(parsed));
  }

  static std::string refusal(const std::vector<const char*>& words) {
    try {
      place(words);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), exit_code::failed);
      return failure.what();
    }
    return "taken";
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(FarPlaceTest, IsNoneUnlessItIsSaid) {
  EXPECT_FALSE(place({"task", "list"}));
  EXPECT_FALSE(place({"daemon", "start"}));
  setenv("DUET_RPC_CONNECT", "", 1);
  EXPECT_FALSE(place({"task", "list"}));
}

TEST_F(FarPlaceTest, ComesFromTheOptions) {
  const auto far = place({"task", "list", "--connect", "tls://far:1", "--identity", "me.pem", "--server-name", "name"});
  ASSERT_TRUE(far);
  EXPECT_EQ(far->url.place(), "far:1");
  EXPECT_EQ(far->identity, "me.pem");
  EXPECT_EQ(far->server_name, "name");
}

TEST_F(FarPlaceTest, ComesFromTheEnvironmentElse) {
  setenv("DUET_RPC_CONNECT", "tls://[::1]", 1);
  setenv("DUET_RPC_IDENTITY", "mine.pem", 1);
  const auto far = place({"task", "list"});
  ASSERT_TRUE(far);
  EXPECT_EQ(far->url.place(), "[::1]:7443");
  EXPECT_EQ(far->identity, "mine.pem");
  EXPECT_EQ(far->server_name, "::1");
  EXPECT_EQ(place({"task", "list", "--connect", "tls://other"})->url.host, "other");
  EXPECT_FALSE(place({"task", "list", "--project", "/"}));
  EXPECT_FALSE(place({"daemon", "start", "--project", "/"}));
}

TEST_F(FarPlaceTest, LooksForTheIdentityBesideTheUsersSettings) {
  setenv("XDG_CONFIG_HOME", "/config", 1);
  EXPECT_EQ(place({"task", "list", "--connect", "tls://far"})->identity, "/config/duet-rpc/tls/client.pem");
  setenv("DUET_RPC_CONFIG", "/elsewhere/settings.toml", 1);
  EXPECT_EQ(place({"task", "list", "--connect", "tls://far"})->identity, "/elsewhere/tls/client.pem");
}

TEST_F(FarPlaceTest, RefusesWhatDoesNotFitTogether) {
  EXPECT_EQ(refusal({"task", "list", "--identity", "x"}), "--identity goes with --connect tls://HOST");
  EXPECT_EQ(refusal({"task", "list", "--server-name", "x"}), "--server-name goes with --connect tls://HOST");
  setenv("DUET_RPC_CONNECT", "far", 1);
  EXPECT_EQ(refusal({"task", "list"}),
            "DUET_RPC_CONNECT is 'far': it is tls://HOST or tls://HOST:PORT, as tls://build.example or tls://[::1]");
  setenv("DUET_RPC_CONNECT", "tls://far", 1);
  EXPECT_NE(refusal({"doctor"}).find("DUET_RPC_CONNECT leads to another machine, and 'doctor' is for this one"),
            std::string::npos);
}

}  // namespace
}  // namespace duet::app
