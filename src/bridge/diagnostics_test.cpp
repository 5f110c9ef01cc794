#include "bridge/diagnostics.h"

#include <fstream>

#include <gtest/gtest.h>

#include "bridge/file_uri.h"
#include "duet/rpc/value.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::bridge {
namespace {

class DiagnosticsTest : public testing::Test {
 protected:
  DiagnosticsTest() {
    std::ofstream(path) << "text";
    documents.open_all({});
    documents.look(path);
  }
  std::string item(std::size_t size) const { return R"({"message":")" + std::string(size, 'x') + "\"}"; }
  void publish(const std::string& items) {
    diagnostics.take(R"({"uri":")" + uri_of(path) + R"(","diagnostics":[)" + items + "]}", {});
  }

  transport::TemporaryFolder folder;
  std::string path = folder.file("a.c");
  Documents documents{[](std::string_view, const std::string&) {}};
  Diagnostics diagnostics{documents};
};

TEST_F(DiagnosticsTest, KeepsTheLatestOfAnOpenDocument) {
  publish(item(1) + "," + item(2));
  publish(item(3));
  ASSERT_NE(diagnostics.find(path), nullptr);
  EXPECT_EQ(rpc::to_text(diagnostics.find(path)->items), "[" + item(3) + "]");
}

TEST_F(DiagnosticsTest, KeepsTheFirstOfMoreThanABoundInBytes) {
  publish(item(1) + "," + item(2'000'000) + "," + item(2) + "," + item(3'000'000) + "," + item(3));
  EXPECT_EQ(diagnostics.find(path)->items.size(), 3U);
  publish(item(5'000'000));
  EXPECT_EQ(diagnostics.find(path)->items.size(), 0U);
}

}  // namespace
}  // namespace duet::bridge
