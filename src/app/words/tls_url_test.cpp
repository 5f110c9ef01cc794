#include "app/words/tls_url.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

std::string place_in(std::string_view text) {
  const std::optional<TlsUrl> url = parse_tls_url(text);
  return url ? url->place() : "none";
}

TEST(TlsUrl, HasAHostAndMayHaveAPort) {
  EXPECT_EQ(place_in("tls://build.example"), "build.example:7443");
  EXPECT_EQ(place_in("tls://build_2.example:1"), "build_2.example:1");
  EXPECT_EQ(place_in("TLS://192.0.2.7:65535"), "192.0.2.7:65535");
  EXPECT_EQ(place_in("tls://[::1]"), "[::1]:7443");
  EXPECT_EQ(place_in("tls://[2001:db8::7]:443"), "[2001:db8::7]:443");
  EXPECT_EQ(place_in("tls://[fe80::1%eth0]:443"), "[fe80::1%eth0]:443");
}

TEST(TlsUrl, NothingElseIsOne) {
  for (const char* text : {"",
                           "tls",
                           "tls:",
                           "tls://",
                           "build.example",
                           "build.example:7443",
                           "https://build.example",
                           "tls:/x",
                           "tls://:7443",
                           "tls://x:",
                           "tls://x:0",
                           "tls://x:65536",
                           "tls://x:+1",
                           "tls://x:-1",
                           "tls://x:7443/",
                           "tls://x/",
                           "tls://user@x",
                           "tls://::1",
                           "tls://[::1",
                           "tls://[::1]x",
                           "tls://[::1]:",
                           "tls://[x]",
                           "tls://[127.0.0.1]",
                           "tls://[fe80::1%]",
                           "tls://-x",
                           "tls://.x",
                           "tls://a b",
                           "tls://\u00e9",
                           "tls://x:1:2"}) {
    EXPECT_EQ(place_in(text), "none") << text;
  }
  EXPECT_EQ(place_in("tls://" + std::string(254, 'x')), "none");
}

}  // namespace
}  // namespace duet::app
