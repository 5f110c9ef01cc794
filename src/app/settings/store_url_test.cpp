#include "app/settings/store_url.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::app {
namespace {

TEST(StoreUrl, IsShownAsItIsWithoutAPassword) {
  for (const char* url :
       {"postgresql://", "postgres://db", "postgresql://duet@db1,db2/work", "postgresql:///work",
        "postgresql://db:5432,[::1]:5433,[fe80::1]/work", "postgresql://%2Frun%2Fpostgresql/work",
        "postgresql:///work?host=/run/postgresql&port=5433", "postgresql://u@h/d?sslmode=verify-full"}) {
    const auto read = read_store_url(url);
    ASSERT_TRUE(read) << url;
    EXPECT_FALSE(read->has_password) << url;
    EXPECT_EQ(read->shown, url);
  }
}

TEST(StoreUrl, APasswordIsFoundAndNotShown) {
  const auto in_front = read_store_url("postgresql://duet:s3cret%40@db/work");
  ASSERT_TRUE(in_front);
  EXPECT_TRUE(in_front->has_password);
  EXPECT_EQ(in_front->shown, "postgresql://duet:***@db/work");
  const auto behind = read_store_url("postgresql://db/work?user=duet&password=s3cret");
  ASSERT_TRUE(behind);
  EXPECT_TRUE(behind->has_password);
  EXPECT_EQ(behind->shown, "postgresql://db/work?user=duet&password=***");
  EXPECT_EQ(shown_store("postgresql://db/work?options=s3cret"), "postgresql://db/work?options=***");
  const auto encoded = read_store_url("postgresql://db/work?pass%77ord=s3cret");
  ASSERT_TRUE(encoded);
  EXPECT_TRUE(encoded->has_password) << "libpq reads it so";
  EXPECT_EQ(encoded->shown, "postgresql://db/work?pass%77ord=***");
}

TEST(StoreUrl, WhatFollowsAPasswordMayBeAPieceOfIt) {
  EXPECT_EQ(shown_store("postgresql://db/work?password=hunter&S3cret"), "postgresql://db/work?password=***&***");
  EXPECT_EQ(shown_store("postgresql://db/work?passwrod=hunter&S3cret"), "postgresql://db/work?passwrod=***&***");
  EXPECT_EQ(shown_store("postgresql://db/work?password=hunter&S3=cret&sslmode=require"),
            "postgresql://db/work?password=***&***&sslmode=require");
  EXPECT_EQ(shown_store("postgresql://db/work?keepalives=1&password=x"),
            "postgresql://db/work?keepalives=***&password=***");
}

TEST(StoreUrl, WhatIsNoneIsNotShownAtAll) {
  for (const char* text :
       {"", "sqlite", "s3cret", "mysql://u:s3cret@h", "postgresql:/u:s3cret@h", "postgresql://u:s3/cret@h/db",
        "postgresql://u:s3?cret@h/db", "postgresql://u:12?a=b@h/db", "postgresql://u:12/34@h/db",
        "postgresql://u:s3#cret@h", "postgresql://u:s3@cret@h", "postgresql://u:s3 cret@h", "postgresql://h:s3cret/db",
        "postgresql://u:s3%zzcret@h", "postgresql://u:s3cret@h:port", "postgresql://u:s3\ncret@h",
        "postgresql://[::1/db", "postgresql://h/db?s3cret@h", "host=db password=s3cret"}) {
    EXPECT_FALSE(read_store_url(text)) << text;
    EXPECT_EQ(shown_store(text), "***") << text;
  }
}

RC_GTEST_PROP(StoreUrl, NoPieceOfAPasswordIsEverShown, ()) {
  // Letters that the rest of the URL has not, and all that has a meaning in URLs.
  const auto password =
      *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::elementOf(std::string("XYZ789/?#@:[]%&=., "))));
  const std::string shown = shown_store("postgresql://duet:" + password + "@host/base");
  RC_ASSERT(shown.find_first_of("XYZ789") == std::string::npos);
}

}  // namespace
}  // namespace duet::app
