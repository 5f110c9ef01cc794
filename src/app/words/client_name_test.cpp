#include "app/words/client_name.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(ClientName, IsOneToSixtyFourOfSomeCharacters) {
  for (const std::string& name : {std::string("a"), std::string("A.b_c-9"), std::string(64, 'x')}) {
    EXPECT_TRUE(is_client_name(name)) << name;
  }
  for (const std::string& name : {std::string(), std::string(65, 'x'), std::string("a b"), std::string("ä"),
                                  std::string("a\n"), std::string("a/b"), std::string("a:b"), std::string("a\0", 2)}) {
    EXPECT_FALSE(is_client_name(name)) << name;
  }
}

}  // namespace
}  // namespace duet::app
