#include "app/certificates/revocations.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

const std::string ones(64, '1');
const std::string bs(64, 'b');

std::string with_colons(const std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2) out += (i == 0 ? "" : ":") + digits.substr(i, 2);
  return out;
}

TEST(Revocations, AreOneALineWithComments) {
  const Revocations read =
      parse_revocations("# mine\n\n  " + ones + "  # laptop\r\n\tsha256:" + with_colons(bs) + "\n#" + bs);
  EXPECT_EQ(read.fingerprints, (std::set<std::string>{ones, bs}));
  EXPECT_TRUE(read.faulty_lines.empty());
}

TEST(Revocations, TellWhichLinesMakeNoSense) {
  const Revocations read = parse_revocations("laptop\n" + ones + "\n" + ones.substr(1) + " # short\n" + bs + " " + bs);
  EXPECT_EQ(read.faulty_lines, (std::vector<std::size_t>{1, 3, 4}));
  EXPECT_EQ(read.fingerprints.size(), 1U);
  EXPECT_TRUE(fault_of_revoked(read, "/tls/revoked").starts_with("/tls/revoked:1: not the SHA-256 fingerprint"));
  EXPECT_EQ(fault_of_revoked(parse_revocations(ones), "/tls/revoked"), "");
}

TEST(Revocations, AreAddedBehindWhatIsThere) {
  EXPECT_EQ(with_revoked("", ones, "laptop"), "# laptop\n" + ones + "\n");
  EXPECT_EQ(with_revoked("# mine", ones, "laptop"), "# mine\n# laptop\n" + ones + "\n");
  const std::string twice = with_revoked(with_revoked("# mine\n", ones, "a"), bs, "b");
  EXPECT_EQ(twice, "# mine\n# a\n" + ones + "\n# b\n" + bs + "\n");
  EXPECT_EQ(parse_revocations(twice).fingerprints.size(), 2U);
}

}  // namespace
}  // namespace duet::app
