#include "app/client/browser.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using Words = std::vector<std::string>;
constexpr const char* some_url = "http://127.0.0.1:1/#login=x";

TEST(Browser, IsTheOneThatTheEnvironmentNames) {
  EXPECT_EQ(browser_command({{"DISPLAY", ":0"}, {"BROWSER", "/bin/true"}}, some_url), (Words{"/bin/true", some_url}));
  EXPECT_EQ(browser_command({{"WAYLAND_DISPLAY", "wayland-0"}, {"BROWSER", "true:false"}, {"PATH", "/bin"}}, some_url),
            (Words{"true", some_url}));
}

TEST(Browser, MayHaveArguments) {
  EXPECT_EQ(browser_command({{"DISPLAY", ":0"}, {"BROWSER", "/bin/true --new %s --last"}}, some_url),
            (Words{"/bin/true", "--new", some_url, "--last"}));
  EXPECT_EQ(browser_command({{"DISPLAY", ":0"}, {"BROWSER", "/bin/true --new"}}, some_url),
            (Words{"/bin/true", "--new", some_url}));
}

TEST(Browser, IsNotOpenedWithoutADisplay) {
  EXPECT_EQ(browser_command({{"BROWSER", "/bin/true"}}, some_url), Words());
  EXPECT_EQ(browser_command({{"DISPLAY", ""}, {"BROWSER", "/bin/true"}}, some_url), Words());
}

TEST(Browser, MustExist) {
  EXPECT_EQ(browser_command({{"DISPLAY", ":0"}, {"BROWSER", "/nowhere/browser"}}, some_url), Words());
  EXPECT_EQ(browser_command({{"DISPLAY", ":0"}, {"PATH", "/nowhere"}}, some_url), Words());
}

}  // namespace
}  // namespace duet::app
