#include "app/doors/door_place.h"

#include <string>

#include <gtest/gtest.h>

#include "app/project/failure.h"
#include "app/project/temporary_project_test.h"
#include "duet/base/log_sink.h"

namespace duet::app {
namespace {

using transport::TcpAddress;

TcpAddress at(const std::string& text) { return TcpAddress::parse(text).value(); }

struct DoorPlaceTest : testing::Test {
  DoorPlace door() { return {log, folder, "tls", "TLS"}; }
  /// Opens it there as a daemon does, and returns the socket.
  static base::Fd open(DoorPlace& door, const TcpAddress& wanted, bool beyond_settings) {
    base::Fd socket = door.listen(wanted);
    door.opened(socket.get(), wanted, beyond_settings);
    return socket;
  }

  TemporaryProject place;
  base::Log log{nullptr};
  StateFolder folder = StateFolder::make(place.project());
  const TcpAddress any = at("127.0.0.1:0");
};

TEST_F(DoorPlaceTest, TheCommandLineGoesBeforeTheSettings) {
  DoorPlace first = door();
  EXPECT_EQ(first.choose(std::nullopt, std::nullopt, false), std::nullopt);
  EXPECT_EQ(first.choose(std::nullopt, any, false), any);
  EXPECT_FALSE(first.is_fixed());
  EXPECT_EQ(first.choose(at("[::1]:1"), any, false), at("[::1]:1"));
  EXPECT_TRUE(first.is_fixed());
}

TEST_F(DoorPlaceTest, ThePortIsThatOfLastTime) {
  std::string before;
  {
    DoorPlace first = door();
    const base::Fd socket = open(first, any, false);
    before = first.address()->text();
    EXPECT_TRUE(first.is_at(any)) << "any port is also the one that it has";
    EXPECT_FALSE(first.is_at(at("127.0.0.2:0")));
  }
  DoorPlace second = door();
  const base::Fd socket = open(second, any, false);
  EXPECT_EQ(second.address()->text(), before);
  DoorPlace third = door();
  const base::Fd other = open(third, any, false);
  EXPECT_NE(third.address()->text(), before) << "somebody has it";
}

TEST_F(DoorPlaceTest, ATakenPortIsAFailureWithItsReason) {
  DoorPlace first = door();
  const base::Fd socket = open(first, any, false);
  try {
    door().listen(*first.address());
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_NE(std::string(failure.what()).find("for TLS: another program listens there"), std::string::npos);
  }
}

TEST_F(DoorPlaceTest, ARestartKeepsADoorThatTheSettingsDoNotOpen) {
  DoorPlace first = door();
  first.choose(any, std::nullopt, false);
  const base::Fd socket = open(first, any, true);
  first.leave(false);
  EXPECT_EQ(door().choose(std::nullopt, std::nullopt, false), std::nullopt) << "it was no restart";
  first.leave(true);
  DoorPlace second = door();
  EXPECT_EQ(second.choose(std::nullopt, std::nullopt, false), any);
  EXPECT_TRUE(second.is_fixed()) << "by the command line, still";
  EXPECT_EQ(door().choose(std::nullopt, std::nullopt, false), std::nullopt) << "once";
}

TEST_F(DoorPlaceTest, WhatTheSettingsSayIsLeftToThem) {
  DoorPlace first = door();
  first.choose(std::nullopt, any, false);
  const base::Fd socket = open(first, any, false);
  first.leave(true);
  EXPECT_EQ(door().choose(std::nullopt, std::nullopt, false), std::nullopt);
}

}  // namespace
}  // namespace duet::app
