#include "task/postgres/records.h"

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::task::postgres {
namespace {

TEST(PostgresRecords, LabelsAreJoinedAndSplit) {
  EXPECT_EQ(split(joined({"gpu", "os=debian"})), (std::vector<std::string>{"gpu", "os=debian"}));
  EXPECT_TRUE(split("").empty());
  EXPECT_EQ(joined({}), "");
}

TEST(PostgresRecords, ARowIsATask) {
  const Result rows({"id",         "prompt",    "agent",        "grp",           "priority", "state",  "held",
                     "created_ms", "exit_code", "error_reason", "error_message", "attempts", "result", "labels",
                     "metadata",   "worker",    "on_lost",      "needs",         "silent",   "late",   "submitted_by"},
                    {{"7",
                      "\"a\\u0000b\"",
                      "claude",
                      "night",
                      "-3",
                      "3",
                      "t",
                      "1700000000009",
                      "2",
                      "0",
                      "exited with code 2",
                      "4",
                      "\\x6f7574",
                      R"({"k":"v"})",
                      R"({"by":"unix"})",
                      "build-3",
                      "1",
                      "gpu\x1fos=debian",
                      "t",
                      R"({"exitCode":0})",
                      "duet"}});
  const Task task = task_of(rows, 0);
  EXPECT_EQ(task.id, 7U);
  EXPECT_EQ(task.prompt, std::string("a\0b", 3));
  EXPECT_EQ(task.group, "night");
  EXPECT_EQ(task.priority, -3);
  EXPECT_EQ(task.progress.state, State::failed);
  EXPECT_TRUE(task.held);
  EXPECT_EQ(task.progress.exit_code, 2);
  EXPECT_EQ(task.progress.error->message, "exited with code 2");
  EXPECT_EQ(task.result, "out");
  EXPECT_EQ(task.labels.at("k"), "v");
  EXPECT_FALSE(task.usage);
  const boost::json::object record = record_of(task);
  EXPECT_EQ(record.at("worker"), "build-3");
  EXPECT_EQ(record.at("onLost"), "retry");
  EXPECT_EQ(rpc::to_text(record.at("needs")), R"(["gpu","os=debian"])");
  EXPECT_EQ(record.at("silent"), true);
  EXPECT_EQ(record.at("late").at("exitCode"), 0);
}

TEST(PostgresRecords, WhatMakesNoSenseIsNothing) {
  const Result rows({"id", "prompt", "labels", "metadata"}, {{"x", "not json", "[1]", "{"}});
  const Task task = task_of(rows, 0);
  EXPECT_EQ(task.id, 0U);
  EXPECT_EQ(task.prompt, "");
  EXPECT_TRUE(task.labels.empty());
  EXPECT_TRUE(object_of(Result({"a"}, {{"[]"}})).empty());
  EXPECT_TRUE(object_of(Result()).empty());
  const boost::json::object odd{{"n", "text"}, {"t", 1}, {"a", 2}};
  EXPECT_EQ(number_in(odd, "n"), 0);
  EXPECT_EQ(text_in(odd, "t"), "");
  EXPECT_FALSE(flag_in(odd, "n"));
  EXPECT_TRUE(array_in(odd, "a").empty());
}

TEST(PostgresRecords, TheBeginningOfAPromptEndsWithAWholeCharacter) {
  const std::string prompt = std::string(kept_prompt - 1, 'x') + "\xC3\xA4 and more";
  EXPECT_EQ(prompt_text(prompt), '"' + std::string(kept_prompt - 1, 'x') + '"');
  EXPECT_EQ(prompt_text(std::string("a\0b", 3)), R"("a\u0000b")");
}

TEST(PostgresRecords, RandomIdsDiffer) {
  const std::string one = random_uuid();
  EXPECT_EQ(one.size(), 36U);
  EXPECT_NE(one, random_uuid());
}

}  // namespace
}  // namespace duet::task::postgres
