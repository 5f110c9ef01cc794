#include "app/methods/method_page.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(MethodPage, ShowsEachOfTheSixMethodsWithItsAnswer) {
  const std::string page = method_page();
  for (const char* name : {"initialize", "listMethods", "describeMethods", "version", "setLogLevel", "shutdown"}) {
    EXPECT_NE(page.find("\n## " + std::string(name) + "\n"), std::string::npos) << name;
  }
  EXPECT_EQ(page.find("rpc.discover\n"), std::string::npos);
  EXPECT_NE(page.find(R"(<-- {"jsonrpc":"2.0","id":1,"result":{"level":"debug","success":true}})"), std::string::npos);
  EXPECT_NE(page.find(R"(<-- {"jsonrpc":"2.0","id":1,"result":{"message":"Shutting down gracefully"}})"),
            std::string::npos);
  EXPECT_NE(page.find("- `level`, string: "), std::string::npos);
}

}  // namespace
}  // namespace duet::app
