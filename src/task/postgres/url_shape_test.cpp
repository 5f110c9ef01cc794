#include "task/postgres/url_shape.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

TEST(PostgresUrlShape, WhatHasItsPartsWhereTheySeemToBeIsClear) {
  for (const char* store :
       {"postgresql://", "postgres://", "postgresql:///work", "postgresql://db1", "postgresql://a@db1/w",
        "postgresql://a:b%40c@db1:5432,db2/w?sslmode=verify-full", "postgresql://a:#!b@[::1]:1/w",
        "postgresql://a@/w?host=/var/run/postgresql", "postgresql://%2Ftmp/w"}) {
    EXPECT_TRUE(is_clear_url(store)) << store;
  }
}

TEST(PostgresUrlShape, WhatMayBeAPasswordThatWasCutIsNot) {
  for (const char* store : {"", "postgresql", "postgresql:/", "mysql://db1/w", "host=db1", "postgresql://a:b@c@db1/w",
                            "postgresql://a:b/c@db1/w", "postgresql://a:b?c@db1/w", "postgresql://a:b@db1/w/x",
                            "postgresql://a:b@db1 x/w", "postgresql://a:b@db1/w?x=@"}) {
    EXPECT_FALSE(is_clear_url(store)) << store;
  }
}

TEST(PostgresUrlShape, HostsAndPortsHaveTheirLetters) {
  for (const char* hosts : {"", "db1", "db1,db2", "10.0.0.1,::1", "fe80::1%eth0", "/run/pg,@abstract", "/tmp/a~b+c"}) {
    EXPECT_TRUE(is_host_list(hosts)) << hosts;
  }
  for (const char* hosts : {"a@b", "db1,a b", "a/b", "db1,x?y", "/tmp/@"}) EXPECT_FALSE(is_host_list(hosts)) << hosts;
  EXPECT_TRUE(is_port_list("5432,,5433"));
  EXPECT_FALSE(is_port_list("54x"));
}

}  // namespace
}  // namespace duet::task::postgres
