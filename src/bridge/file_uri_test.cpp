#include "bridge/file_uri.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::bridge {
namespace {

TEST(FileUriTest, EscapesWhatIsNoPlainLetter) {
  EXPECT_EQ(uri_of("/a/b-c_d.e~f"), "file:///a/b-c_d.e~f");
  EXPECT_EQ(uri_of("/a b/50%/#1?x+y:z"), "file:///a%20b/50%25/%231%3Fx%2By%3Az");
  EXPECT_EQ(uri_of("/\xC3\xA4/\xFF"), "file:///%C3%A4/%FF");
}

TEST(FileUriTest, ReadsWhatServersWrite) {
  EXPECT_EQ(path_of("file:///a/b"), "/a/b");
  EXPECT_EQ(path_of("file:/a/b"), "/a/b");
  EXPECT_EQ(path_of("FILE://localhost/a/b"), "/a/b");
  EXPECT_EQ(path_of("file:///c%3a/%E4%BD%A0"), "/c:/\xE4\xBD\xA0");
  EXPECT_EQ(path_of("file:///a#L5"), "/a");
  EXPECT_EQ(path_of("file:///100%"), "/100%");
  EXPECT_EQ(path_of("file:///%zz%2"), "/%zz%2");
}

TEST(FileUriTest, RefusesWhatIsNoFileHere) {
  for (const char* uri :
       {"", "http://a/b", "untitled:1", "file://elsewhere/a", "file:a", "file:///a%00b", "jdt:///x"}) {
    EXPECT_FALSE(path_of(uri)) << uri;
  }
}

RC_GTEST_PROP(FileUriProperty, APathComesBackByteForByte, (const std::vector<char>& bytes)) {
  std::string path = "/";
  for (const char byte : bytes) path += byte == '\0' ? '0' : byte;
  RC_ASSERT(path_of(uri_of(path)) == path);
}

}  // namespace
}  // namespace duet::bridge
