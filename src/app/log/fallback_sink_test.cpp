#include "app/log/fallback_sink.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using base::Level;

/// Takes so many bytes, then no more.
struct Bounded final : base::LogSink {
  Bounded(std::string& to, std::size_t& bytes) : text(to), room(bytes) {}
  std::size_t write(std::string_view lines) override {
    const std::size_t taken = std::min(room, lines.size());
    text += lines.substr(0, taken);
    room -= taken;
    if (taken < lines.size()) errno = ENOSPC;
    return taken;
  }
  std::string& text;
  std::size_t& room;
};

std::string line(std::string_view message, Level level = Level::warn) {
  std::string text;
  base::LineFormat().append(text, std::chrono::system_clock::time_point(), level, message, {});
  return text;
}

class AFallback : public testing::Test {
 protected:
  static constexpr std::size_t plenty = 1 << 20;
  static constexpr std::string_view reason =
      " warn  DUET_RPC_LOG cannot be written, logging to stderr "
      "reason=\"No space left on device\"\n";

  bool takes(const std::string& lines) { return sink_.write(lines) == lines.size(); }
  /// What stderr has, without the time of the complaint.
  std::string on_stderr() const {
    return stderr_.empty() ? "" : stderr_.substr(std::string("0000-00-00T00:00:00.000Z").size());
  }

  std::string file_;
  std::string stderr_;
  std::size_t file_room_ = 0;
  std::size_t stderr_room_ = plenty;
  FallbackSink sink_{std::make_unique<Bounded>(file_, file_room_), std::make_unique<Bounded>(stderr_, stderr_room_),
                     Level::warn};
};

TEST_F(AFallback, IsNotUsedWhileTheFileTakesEverything) {
  file_room_ = plenty;
  EXPECT_TRUE(takes(line("one") + line("two", Level::info)));
  EXPECT_EQ(file_, line("one") + line("two", Level::info));
  EXPECT_EQ(stderr_, "");
}

TEST_F(AFallback, SaysWhyOnceAndGetsTheWarnings) {
  EXPECT_TRUE(takes(line("started", Level::info)));
  EXPECT_TRUE(takes(line("one") + line("detail", Level::debug) + line("two", Level::error)));
  EXPECT_EQ(on_stderr(), std::string(reason) + line("one") + line("two", Level::error));
}

TEST_F(AFallback, GetsALineWholeThatTheFileTookInPart) {
  file_room_ = line("one").size() + 10;
  EXPECT_TRUE(takes(line("one") + line("two") + line("three")));
  EXPECT_TRUE(file_.starts_with(line("one")));
  EXPECT_EQ(on_stderr(), std::string(reason) + line("two") + line("three"));
}

TEST_F(AFallback, IsLeftAgainWhenTheFileHasRoom) {
  EXPECT_TRUE(takes(line("one")));
  file_room_ = plenty;
  EXPECT_TRUE(takes(line("two")));
  EXPECT_EQ(file_, line("two"));
  file_room_ = 0;
  EXPECT_TRUE(takes(line("three")));
  EXPECT_EQ(on_stderr(), std::string(reason) + line("one") + line("three"));
}

TEST_F(AFallback, ThatTakesNothingEitherLosesTheLines) {
  stderr_room_ = 0;
  EXPECT_EQ(sink_.write(line("one")), 0U);
  stderr_room_ = plenty;
  EXPECT_TRUE(takes(line("two")));
  EXPECT_EQ(on_stderr(), std::string(reason) + line("two"));
}

}  // namespace
}  // namespace duet::app
