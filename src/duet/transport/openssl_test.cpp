#include "duet/transport/openssl.h"

#include <gtest/gtest.h>

namespace duet::transport {
namespace {

TEST(OpenSslTest, IsOpenedOnceAndHasAllThatWeCall) {
  EXPECT_EQ(&openssl(), &openssl());
  EXPECT_NE(openssl().ERR_get_error, nullptr);
}

TEST(OpenSslTest, NothingHasFailedUntilSomethingHas) { EXPECT_EQ(openssl_error(), "unknown error"); }

}  // namespace
}  // namespace duet::transport
