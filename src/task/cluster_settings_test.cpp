#include "task/cluster_settings.h"

#include <gtest/gtest.h>

namespace duet::task {
namespace {

using Names = std::vector<std::string>;

TEST(ClusterSettingsOfTasks, AcceptIsTheAgentsOfTheSettingsWithoutTheShell) {
  TaskSettings tasks;
  EXPECT_EQ(accepted_agents({}, tasks), Names());
  tasks.agents["mine"] = {};
  tasks.agents["shell"] = {};
  tasks.agents["claude"] = {};
  EXPECT_EQ(accepted_agents({}, tasks), (Names{"claude", "mine"}));
}

TEST(ClusterSettingsOfTasks, AcceptIsWhatIsNamedAndThere) {
  TaskSettings tasks;
  tasks.agents["mine"] = {};
  EXPECT_EQ(accepted_agents({.accept = Names{"shell", "mine", "gone", "claude", "mine"}}, tasks),
            (Names{"claude", "mine", "shell"}));
  EXPECT_EQ(accepted_agents({.accept = Names()}, tasks), Names());
}

TEST(ClusterSettingsOfTasks, WhereTheQueueIsStaysUntilARestart) {
  const ClusterSettings running{.store = "postgresql://a", .project = "p", .name = "me"};
  ClusterSettings next{.store = "postgresql://b", .project = "q", .schema = "other", .name = "me", .labels = {"gpu"}};
  const std::string said = keep_until_restart(running, next);
  EXPECT_EQ(
      said,
      "changed, and used after a restart only: store, cluster.schema, cluster.project; 'duet-rpc daemon restart'");
  EXPECT_EQ(next.store, running.store);
  EXPECT_EQ(next.schema, "duet");
  EXPECT_EQ(next.project, "p");
  EXPECT_EQ(next.labels, Names{"gpu"}) << "all else may change";
  EXPECT_EQ(keep_until_restart(running, next), "");
}

TEST(ClusterSettingsOfTasks, WhoRunsTasksStaysUntilARestart) {
  const ClusterSettings running{.store = "postgresql://a", .project = "p", .name = "me"};
  ClusterSettings next = running;
  next.run = false;
  next.output = 1;
  EXPECT_NE(keep_until_restart(running, next).find("cluster.run"), std::string::npos);
  EXPECT_TRUE(next.run);
  EXPECT_EQ(next.output, 1U);
}

TEST(ClusterSettingsOfTasks, AStoreThatComesOrGoesNeedsARestart) {
  ClusterSettings comes{.store = "postgresql://a", .project = "p", .name = "me"};
  EXPECT_NE(keep_until_restart({}, comes), "");
  EXPECT_FALSE(comes.store);
  ClusterSettings goes;
  EXPECT_NE(keep_until_restart({.store = "postgresql://a", .project = "p", .name = "me"}, goes), "");
  EXPECT_EQ(goes.store, "postgresql://a");
  EXPECT_EQ(goes.name, "me");
}

}  // namespace
}  // namespace duet::task
