#include "duet/framing/url_query.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::framing {
namespace {

using Parts = std::vector<QueryPart>;

TEST(UrlQuery, PartsComeInTheirOrder) {
  EXPECT_EQ(read_query(""), Parts{});
  EXPECT_EQ(read_query("since=12"), (Parts{{"since", "12"}}));
  EXPECT_EQ(read_query("kind=a&kind=b&task=task-3&kind=a"),
            (Parts{{"kind", "a"}, {"kind", "b"}, {"task", "task-3"}, {"kind", "a"}}));
  EXPECT_EQ(read_query("a=&b=c=d&e=?/:@"), (Parts{{"a", ""}, {"b", "c=d"}, {"e", "?/:@"}}));
}

TEST(UrlQuery, EscapesAreDecodedOnce) {
  EXPECT_EQ(read_query("a=%41%7a%7A"), (Parts{{"a", "Azz"}}));
  EXPECT_EQ(read_query("%61=1%26b%3D2"), (Parts{{"a", "1&b=2"}}));
  EXPECT_EQ(read_query("a=%2541"), (Parts{{"a", "%41"}}));
  EXPECT_EQ(read_query("a=b+c%2B%20"), (Parts{{"a", "b c+ "}}));
  EXPECT_EQ(read_query("a=%00%ff"), (Parts{{"a", std::string("\0\xFF", 2)}}));
}

TEST(UrlQuery, WhatIsNotWellFormedIsAFault) {
  for (const char* query :
       {"a",      "a=b&c",    "=b",  "&",    "a=b&", "&a=b",  "a=b&&c=d", "a=%",        "a=%4",   "a=%4g",  "a=%g4",
        "a=%%41", "a=%u0041", "%=b", "%4=b", "a=b%", "a=b#c", "a=b c",    "a=\xC3\xA9", "a=\x7F", "a=\x01", "a=b;%3"}) {
    EXPECT_EQ(read_query(query), std::nullopt) << query;
  }
}

std::string escaped(const std::string& text) {
  static const char* const digits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', digits[byte / 16], digits[byte % 16]};
  }
  return out;
}

RC_GTEST_PROP(UrlQuery, WhatIsEscapedComesBack, (const std::vector<std::pair<std::string, std::string>>& pairs)) {
  std::string query;
  Parts expected;
  for (const auto& [name, value] : pairs) {
    if (name.empty()) continue;
    query += (query.empty() ? "" : "&") + escaped(name) + '=' + escaped(value);
    expected.push_back({name, value});
  }
  RC_ASSERT(read_query(query) == expected);
}

}  // namespace
}  // namespace duet::framing
