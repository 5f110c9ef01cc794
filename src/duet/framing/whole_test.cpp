#include "duet/framing/whole.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::framing {
namespace {

TEST(WholeDecoder, GivesWhatItIsFed) {
  WholeDecoder decoder;
  EXPECT_FALSE(decoder.next());
  for (const std::string_view message : {"{\n}\n", "", "[]"}) {
    decoder.feed(message);
    EXPECT_EQ(decoder.next().value().body, message);
    EXPECT_FALSE(decoder.next());
  }
}

TEST(WholeDecoder, RefusesWhatIsTooLarge) {
  WholeDecoder decoder(3);
  decoder.feed("[1]");
  EXPECT_EQ(decoder.next().value().body, "[1]");
  decoder.feed("[12]");
  EXPECT_EQ(decoder.next().value().fault, Fault::oversize);
  EXPECT_EQ(decoder.fault_extent().bytes, 4U);
}

}  // namespace
}  // namespace duet::framing
