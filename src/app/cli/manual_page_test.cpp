#include "app/cli/manual_page.h"

#include <cctype>
#include <sstream>

#include <gtest/gtest.h>

#include "app/cli/command_table.h"
#include "duet/version.h"

namespace duet::app {
namespace {

// The page as text: hyphens and fonts without their escapes.
std::string readable() {
  std::string out;
  const std::string page = manual_page();
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page.compare(i, 2, "\\f") == 0) {
      i += 2;
    } else if (page.compare(i, 2, "\\-") != 0) {
      out += page[i];
    }  // else the hyphen itself comes next
  }
  return out;
}

TEST(ManualPage, NamesWhatTheHelpNames) {
  const std::string page = readable();
  for (const CommandEntry& command : commands()) {
    EXPECT_EQ(page.find(".SS duet-rpc " + std::string(command.path)) != std::string::npos, command.listed);
    for (const OptionEntry& option : command.options)
      EXPECT_NE(page.find("--" + std::string(option.name)), std::string::npos);
  }
  for (const OptionEntry& option : global_options())
    EXPECT_NE(page.find("--" + std::string(option.name)), std::string::npos);
  for (const TermEntry& variable : environment()) EXPECT_NE(page.find(variable.name), std::string::npos);
  EXPECT_NE(page.find("duet-rpc " + std::string(kVersion)), std::string::npos);
}

TEST(ManualPage, NoLineOfTextIsTakenForARequest) {
  std::istringstream lines(manual_page());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(line.empty());
    EXPECT_NE(line.front(), '\'');
    EXPECT_TRUE(line.front() != '.' || (line.size() > 2 && std::isalpha(line[1]) != 0)) << line;
  }
}

TEST(ManualPage, TheExampleKeepsItsBackslashes) {
  EXPECT_NE(manual_page().find(R"(\er\en\er\en{"jsonrpc")"), std::string::npos);
}

}  // namespace
}  // namespace duet::app
