#include "app/doors/roles.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/log_tape_test.h"

namespace duet::app {
namespace {

using Lines = std::vector<std::string>;

peer::Peer who(std::string role, std::string door = "http") {
  peer::Peer peer;
  peer.admission = std::make_shared<const peer::Admission>(
      peer::Admission{.door = std::move(door), .name = "ci", .role = std::move(role)});
  return peer;
}

peer::Method method(std::string needs, bool read_only = false) {
  peer::Method out{.name = "a.b"};
  out.needs = std::move(needs);
  out.read_only = read_only;
  return out;
}

TEST(Roles, EachMayDoWhatTheOneBeforeItMay) {
  const std::vector<std::vector<bool>> table{{true, false, false}, {true, true, false}, {true, true, true}};
  for (std::size_t has = 0; has < role::all.size(); ++has) {
    for (std::size_t needed = 0; needed < role::all.size(); ++needed) {
      EXPECT_EQ(may(role::all[has], role::all[needed]), table[has][needed]) << role::all[has] << role::all[needed];
    }
    EXPECT_FALSE(may(role::all[has], role::nobody_far));
  }
}

TEST(Roles, WhatIsNoneMayDoNothing) {
  for (const char* const name : {"", "unix", "Own", "own ", "root"}) {
    EXPECT_FALSE(is_role(name)) << name;
    EXPECT_FALSE(may(name, role::observe)) << name;
    EXPECT_FALSE(may(role::own, name)) << name;
    EXPECT_FALSE(may(name, name)) << name;
  }
}

TEST(AskedBy, IsTheDoorAndTheName) {
  EXPECT_EQ(asked_by({}), "unix");
  EXPECT_TRUE(is_owner({}) && is_owner(who("own")));
  EXPECT_FALSE(is_owner(who("operate")) || is_owner(who("observe")));
  EXPECT_EQ(asked_by(who("own")), "http:ci");
  EXPECT_EQ(asked_by(who("own", "tls")), "tls:ci");
}

TEST(DoorGuard, RefusesWithWhatIsNeeded) {
  base::LogTape tape(base::Level::info);
  const peer::Guard guard = door_guard(tape.log());
  const auto refused = guard(method("own"), who("operate"));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), -32005);
  EXPECT_EQ(refused->message(), "Not permitted");
  EXPECT_EQ(refused->data(), R"({"method":"a.b","needs":"own","role":"operate"})");
  EXPECT_EQ(guard(method("unix"), who("own"))->data(), R"({"method":"a.b","needs":"unix","role":"own"})");
  EXPECT_EQ(tape.lines(), Lines{});
}

TEST(DoorGuard, LogsWhoMayChangeSomethingAndNobodyWhoOnlyLooks) {
  base::LogTape tape(base::Level::info);
  const peer::Guard guard = door_guard(tape.log());
  EXPECT_FALSE(guard(method("own"), who("own", "tls")));
  EXPECT_FALSE(guard(method("operate"), who("operate")));
  EXPECT_FALSE(guard(method("own", true), who("own")));
  EXPECT_FALSE(guard(method("observe"), who("observe")));
  EXPECT_EQ(tape.lines(),
            (Lines{R"(info  called method="a.b" by="tls:ci")", R"(info  called method="a.b" by="http:ci")"}));
}

}  // namespace
}  // namespace duet::app
