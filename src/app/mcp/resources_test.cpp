#include "app/mcp/resources.h"

#include <gtest/gtest.h>

#include "duet/rpc/json_scan.h"

namespace duet::app::mcp {
namespace {

using Kind = ResourceName::Kind;

TEST(Resources, AreNamedByTheirAddress) {
  EXPECT_EQ(parse_resource("duet://status")->kind, Kind::status);
  EXPECT_EQ(parse_resource("duet://tasks")->kind, Kind::tasks);
  EXPECT_EQ(parse_resource("duet://tasks/task-7")->task, "task-7");
  EXPECT_EQ(parse_resource("duet://tasks/task-7/output")->kind, Kind::output);
  EXPECT_EQ(parse_resource("duet://tasks/task-7/output")->task, "task-7");
}

TEST(Resources, AnythingElseIsNone) {
  for (const char* uri : {"", "duet://", "duet://status/", "duet://tasks/", "duet://tasks/7", "duet://tasks/task-1/log",
                          "duet://tasks/task-../output", "http://status", "duet://tasks/{id}"}) {
    EXPECT_FALSE(parse_resource(uri)) << uri;
  }
}

TEST(Resources, TheListsAreJson) {
  EXPECT_TRUE(rpc::is_valid_json('{' + std::string(resource_list()) + '}'));
  EXPECT_TRUE(rpc::is_valid_json('{' + std::string(template_list()) + '}'));
}

TEST(Resources, ContentsSayWhatTheyAre) {
  EXPECT_EQ(contents_of("duet://status", {Kind::status}, "{}"),
            R"("contents":[{"uri":"duet://status","mimeType":"application/json","text":"{}"}])");
  EXPECT_EQ(contents_of("u", {Kind::output, "task-1"}, "a\n"),
            R"("contents":[{"uri":"u","mimeType":"text/plain","text":"a\n"}])");
}

}  // namespace
}  // namespace duet::app::mcp
