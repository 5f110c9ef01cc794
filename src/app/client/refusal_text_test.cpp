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

TEST(RefusalText, AnUnknownTaskIsToldFromOtherRefusals) {
  EXPECT_TRUE(is_unknown_task({.cause = peer::Outcome::Cause::refused, .error = rpc::Error(-32000, "Task not found")}));
  EXPECT_FALSE(is_unknown_task({.cause = peer::Outcome::Cause::refused, .error = rpc::Error(-32001, "It has ended")}));
  EXPECT_FALSE(is_unknown_task({.cause = peer::Outcome::Cause::timed_out}));
}

TEST(RefusalText, AnUnknownMethodSaysWhereTheOthersAre) {
  EXPECT_EQ(refusal_text("x", rpc::method_not_found()),
            "x: Method not found (-32601); listMethods tells what there is");
}

TEST(RefusalText, ARoleThatIsTooSmallIsToldWithTheOneThatIsNeeded) {
  EXPECT_EQ(refusal_text("task.submit", rpc::not_permitted("task.submit", "own", "observe")),
            "task.submit: Not permitted (-32005): needs own, this certificate has observe");
  EXPECT_EQ(refusal_text("token.list", rpc::not_permitted("token.list", "unix", "own")),
            "token.list: Not permitted (-32005): it is for the daemon's own machine, at its Unix socket");
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

TEST(RefusalText, AKeyThatIsUsedNamesItsTaskAndWhatDiffers) {
  const auto refused = [](std::string_view differs) {
    const std::string data =
        R"({"param":"key","expected":"x","taskId":"task-3","differs":)" + std::string(differs) + "}";
    return refusal_text("task.submit", rpc::Error(-32602, "Invalid params", rpc::Json::trusted(data)));
  };
  EXPECT_EQ(refused(R"(["cwd"])"),
            "task.submit: Invalid params (-32602): the key belongs to task-3 already, where cwd is different");
  EXPECT_EQ(
      refused(R"(["prompt","cwd","env.PATH"])"),
      "task.submit: Invalid params (-32602): the key belongs to task-3 already, where prompt, cwd and env.PATH are "
      "different");
}

}  // namespace
}  // namespace duet::app
