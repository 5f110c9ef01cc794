#include "app/view/task_columns.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app {
namespace {

const base::UtcTime task_columns_now = *parse_time("2026-11-16T14:02:11.000Z");

boost::json::array records() {
  return rpc::parse_value(
             R"([{"id":"task-2","state":"running","agent":"a","priority":3,"prompt":"Fix","metadata":{"group":"g"},
                  "createdAt":"2026-11-16T14:01:11.000Z","startedAt":"2026-11-16T14:02:01.000Z","completedAt":null},
                 {"id":"task-1","state":"failed","agent":"a","priority":0,"prompt":"日本","labels":{"k":"v","x":"y"},
                  "createdAt":"2026-11-16T13:02:11.000Z","error":{"reason":"exit","message":"exited with code 2"},
                  "exitCode":2,"signal":null,"metadata":{"cwd":"/a","after":["task-9","task-8"]}}])")
      .as_array();
}

std::string shown(std::string_view columns) {
  const auto latest = [](const std::string& id) { return "line of " + id; };
  return task_table(records(), *parse_columns(columns), task_columns_now, latest).text(TextStyle(false), std::nullopt);
}

std::string joined(const TaskColumns& columns) {
  std::string out;
  for (const std::string& name : columns) out += (out.empty() ? "" : ",") + name;
  return out;
}

TEST(TaskColumns, ShowWhatTheRecordsHave) {
  EXPECT_EQ(shown("id,created,ran,group,labels,exit"),
            "ID      CREATED  RAN  GROUP  LABELS   EXIT\n"
            "task-2  1m ago   10s  g\n"
            "task-1  1h ago               k=v x=y  2\n");
  EXPECT_EQ(shown("folder,after,error,output"),
            "FOLDER  AFTER          ERROR               OUTPUT\n"
            "                                           line of task-2\n"
            "/a      task-9 task-8  exited with code 2\n");
}

TEST(TaskColumns, AWideTerminalShowsMore) {
  EXPECT_EQ(joined(usual_columns(records(), std::nullopt)), "id,state,agent,created,ran,prompt");
  EXPECT_EQ(joined(usual_columns(records(), 80)), "id,state,agent,created,ran,prompt");
  EXPECT_EQ(joined(usual_columns(records(), 100)), "id,state,agent,created,ran,prompt,output");
  EXPECT_EQ(joined(usual_columns(records(), 150)),
            "id,state,agent,group,priority,labels,created,ran,error,prompt,output");
}

TEST(TaskColumns, OfASharedQueueAWideTerminalShowsWhereTasksRun) {
  boost::json::array shared = records();
  shared[0].as_object()["worker"] = "build-3";
  EXPECT_EQ(joined(usual_columns(shared, 80)), "id,state,agent,created,ran,prompt");
  EXPECT_TRUE(joined(usual_columns(shared, 150)).starts_with("id,state,agent,worker,group,"));
}

TEST(TaskColumns, OneThatIsNotThereIsNamed) {
  EXPECT_TRUE(
      parse_columns("id,stat").error().starts_with("--columns: there is no column 'stat', perhaps 'state' is "));
  EXPECT_TRUE(parse_columns("id,").error().starts_with("--columns: there is no column ''; there are id, state, "));
}

}  // namespace
}  // namespace duet::app
