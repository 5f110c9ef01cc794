#include "app/view/log_view.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(LogView, ALineIsAnObject) {
  EXPECT_EQ(log_line_as_json(R"(2026-11-15T09:30:00.123Z warn  Invalid params method="x" id=2)"),
            R"({"time":"2026-11-15T09:30:00.123Z","level":"warn","message":"Invalid params method=\"x\" id=2"})");
  EXPECT_EQ(log_line_as_json("2026-11-15T09:30:00.123Z trace sent"),
            R"({"time":"2026-11-15T09:30:00.123Z","level":"trace","message":"sent"})");
}

TEST(LogView, WhatIsNoLineOfOursIsItsMessage) {
  for (const char* line : {"", "terminate called", "2026-11-15T09:30:00.123Z loud x", "2026-11-15 info x"}) {
    EXPECT_EQ(log_line_as_json(line), R"({"message":")" + std::string(line) + "\"}");
  }
  EXPECT_EQ(log_line_as_json("\xFF"), "{\"message\":\"\uFFFD\"}");
}

}  // namespace
}  // namespace duet::app
