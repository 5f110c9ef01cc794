#include "app/client/refusal_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(RefusalText, NamesTheParamThatIsWrongAndWhatIsAccepted) {
  EXPECT_EQ(refusal_text("m", rpc::invalid_params("level", "string", "loud", std::vector{"debug", "info", "warn"})),
            "m: Invalid params (-32602): param level, expected string, received loud, accepted debug, info or warn");
}

TEST(RefusalText, AnUnknownAgentIsCalledThat) {
  EXPECT_EQ(
      refusal_text("task.submit", rpc::invalid_params("agent", "the name of an agent", "cat", std::vector{"a", "b"})),
      "task.submit: Invalid params (-32602): there is no agent 'cat': it must be a or b");
  EXPECT_EQ(refusal_text("task.submit", rpc::invalid_params("agent", "string", "number")),
            "task.submit: Invalid params (-32602): param agent, expected string, received number");
}

TEST(RefusalText, AnUnknownMethodSaysWhereTheOthersAre) {
  EXPECT_EQ(refusal_text("x", rpc::method_not_found()),
            "x: Method not found (-32601); listMethods tells what there is");
}

TEST(RefusalText, TakesDataOfAnyShapeAndCutsWhatIsLong) {
  EXPECT_EQ(refusal_text("m", rpc::Error(-1, "No")), "m: No (-1)");
  EXPECT_EQ(refusal_text("m", rpc::Error(-1, "No", std::vector{1, 2})), "m: No (-1): [1,2]");
  EXPECT_EQ(refusal_text("m", rpc::Error(-1, "No", rpc::Json::parse(R"({"param":5,"accepted":{},"received":[]})"))),
            "m: No (-1): param 5, accepted {}, received []");
  std::string letters;
  for (int i = 0; i < 400; ++i) letters += "ä";
  const std::string text = refusal_text("m", rpc::Error(-1, "No", {{"x", letters}}));
  EXPECT_TRUE(text.ends_with("ä...")) << "no character is cut in two";
}

}  // namespace
}  // namespace duet::app
