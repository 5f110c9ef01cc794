#include "app/log/log_setup.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

namespace fs = std::filesystem;
using base::Level;

class LogSetupIn : public testing::Test {
 protected:
  LogSetupIn() {
    std::string name = testing::TempDir() + "duet-setup-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~LogSetupIn() override { fs::remove_all(folder_); }

  fs::path folder_;
};

/// Keeps what is written.
class Kept final : public base::LogSink {
 public:
  explicit Kept(std::string& text) : text_(text) {}
  std::size_t write(std::string_view lines) override {
    text_ += lines;
    return lines.size();
  }

 private:
  std::string& text_;
};

std::string announced(const LogSetup& setup) {
  std::string text;
  base::Log log(std::make_unique<Kept>(text), setup.level);
  announce(log, setup);
  EXPECT_EQ(log.level(), setup.level);
  log.close();
  return text;
}

TEST_F(LogSetupIn, StderrHasWarningsOnlyUnlessAskedForMore) {
  for (const char* none : {static_cast<const char*>(nullptr), ""}) {
    EXPECT_EQ(set_up_log(none, {}, false).level, Level::warn);
    EXPECT_EQ(set_up_log(none, {}, false).sink_name, "stderr");
    EXPECT_EQ(set_up_log(none, Level::debug, false).level, Level::debug);
  }
}

TEST_F(LogSetupIn, AFileGetsInfoUnlessAskedForOther) {
  const std::string file = folder_ / "log";
  EXPECT_EQ(set_up_log(file.c_str(), {}, true).level, Level::info);
  EXPECT_EQ(set_up_log(file.c_str(), Level::error, true).level, Level::error);
  EXPECT_EQ(set_up_log(file.c_str(), {}, true).sink_name, file);
  EXPECT_FALSE(set_up_log(file.c_str(), {}, true).sink->coloured()) << "colours are for terminals";
}

TEST_F(LogSetupIn, AFileThatCannotBeWrittenIsComplainedAboutAtAnyLevel) {
  const std::string file = folder_ / "missing" / "log";
  for (const std::optional<Level> asked : {std::optional<Level>(), std::optional(Level::error)}) {
    const LogSetup setup = set_up_log(file.c_str(), asked, true);
    EXPECT_EQ(setup.level, asked.value_or(Level::warn));
    EXPECT_EQ(setup.sink_name, "stderr");
    EXPECT_TRUE(setup.sink->coloured());
    const std::string text = announced(setup);
    EXPECT_NE(
        text.find(R"(warn  DUET_RPC_LOG cannot be written, logging to stderr reason="No such file or directory")"),
        std::string::npos)
        << text;
    EXPECT_EQ(text.find("info"), std::string::npos);
  }
}

TEST_F(LogSetupIn, TheFirstLineTellsVersionPidLevelAndSink) {
  const std::string text = announced(set_up_log(nullptr, Level::info, false));
  EXPECT_NE(text.find("info  duet-rpc started version=\""), std::string::npos) << text;
  EXPECT_NE(text.find(" pid=" + std::to_string(getpid()) + R"( level="info" sink="stderr")"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace duet::app
