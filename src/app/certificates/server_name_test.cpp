#include "app/certificates/server_name.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using Words = std::vector<std::string>;

TEST(ServerNames, AreHostNamesAddressesAndWildcards) {
  const Words words{"localhost",     "db-1.example.net", "192.0.2.7",    "2001:db8::7",
                    "*.example.net", "my_box",           "xn--bcher-kva"};
  EXPECT_EQ(server_names(words).value(), words);
}

TEST(ServerNames, AreSpeltInOneWayAndThereOnce) {
  EXPECT_EQ(server_names({"LocalHost", "localhost", "0:0::1", "::1", "2001:DB8:0:0::7"}).value(),
            (Words{"localhost", "::1", "2001:db8::7"}));
}

TEST(ServerNames, RefuseWhatNobodyCanAskFor) {
  const Words bad{"",
                  ".",
                  "a..b",
                  "-a",
                  "a-",
                  "a b",
                  "a,DNS:b",
                  "a\n",
                  "[::1]",
                  "::1%lo",
                  "1.2.3.4:5",
                  "host:7443",
                  "1.2.3.400",
                  "127.1",
                  "*",
                  "*.net",
                  "a.*.net",
                  "*a.b.net",
                  "b\xc3\xbc",
                  "example.net.",
                  "https://a.b",
                  "a/b",
                  "::g",
                  "1.2.3.4/8",
                  std::string(64, 'a'),
                  std::string("a\0b", 3)};
  for (const std::string& word : bad) {
    EXPECT_FALSE(server_names({word})) << word;
    EXPECT_FALSE(is_server_name(word)) << word;
  }
  std::string longest;
  for (int i = 0; i < 63; ++i) longest += "abc.";
  EXPECT_TRUE(server_names({longest + "d"}));
  EXPECT_FALSE(server_names({longest + "de"}));
}

TEST(ServerNames, SayWhatIsWrong) {
  EXPECT_EQ(server_names({"ok", "*.net"}).error(),
            "'*.net' cannot be in a server's certificate: a wildcard needs two more labels, as in *.example.net");
  EXPECT_NE(server_names({"b\xc3\xbc.de"}).error().find("xn--"), std::string::npos);
}

TEST(ServerNames, AreAHundredAtMost) {
  Words words;
  for (int i = 0; i < 100; ++i) words.push_back("host" + std::to_string(i));
  EXPECT_TRUE(server_names(words));
  words.emplace_back("onemore");
  EXPECT_FALSE(server_names(words));
}

}  // namespace
}  // namespace duet::app
