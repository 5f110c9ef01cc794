#include "task/handles.h"

#include <optional>
#include <string>

#include "task/supervisor_fixture_test.h"

namespace duet::task {
namespace {

struct HandlesTest : SupervisorTest {
  std::string give(TaskId id) {
    std::string handle;
    handles->give(id, [&](const tl::expected<std::string, rpc::Error>& given) { handle = given.value_or("refused"); });
    wait_for_store();
    return handle;
  }
  void submit_with_handle() {
    supervisor->submit(
        {.prompt = "true"}, [](const tl::expected<Accepted, rpc::Error>&) {}, Handles::for_new_task());
    wait_for_store();
  }
  void SetUp() override {
    settings.max_running = 100;
    SupervisorTest::SetUp();
    handles.emplace(*store);
  }
  void begin_again() {
    handles.reset();
    begin();
    handles.emplace(*store);
  }

  std::optional<Handles> handles;
};

TEST_F(HandlesTest, ANewTaskHasItsHandleFromTheBeginning) {
  submit_with_handle();
  const std::string handle = give(1);
  EXPECT_EQ(handle.size(), std::string("task-1-").size() + 26);
  EXPECT_TRUE(handle.starts_with("task-1-")) << handle;
  EXPECT_EQ(give(1), handle);
  begin_again();
  EXPECT_EQ(give(1), handle);
  EXPECT_EQ(handles->find(handle), 1U);
}

TEST_F(HandlesTest, ATaskWithoutOneIsGivenOneAndOnlyOne) {
  submit();
  std::vector<std::string> answers;
  for (int i = 0; i < 3; ++i) {
    handles->give(1, [&](const tl::expected<std::string, rpc::Error>& given) { answers.push_back(*given); });
  }
  EXPECT_TRUE(answers.empty());  // it is not on disk
  wait_for_store();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_EQ(handles->find(answers[0]), 1U);
}

TEST_F(HandlesTest, ATaskThatIsRemovedMeanwhileLeavesNone) {
  submit();
  store->write({.apply = [](StoreWriter& writer) {
    Handles::forget(writer, 1);
    writer.erase(1);
  }});
  EXPECT_EQ(give(1), "refused");
  wait_for_store();
  const auto has_one = store->read([](StoreReader& reader) { return Handles::has_one(reader, 1); });
  EXPECT_FALSE(*has_one);
}

TEST_F(HandlesTest, AWrongOneIsUnknown) {
  submit_with_handle();
  submit();
  const std::string handle = give(1);
  for (std::string wrong :
       {handle.substr(0, handle.size() - 1), handle + "a", std::string("task-1"), std::string("task-1-"),
        "task-2" + handle.substr(6), std::string("x"), std::string(), "task-01" + handle.substr(6)}) {
    const auto found = handles->find(wrong);
    ASSERT_FALSE(found) << wrong;
    EXPECT_EQ(found.error().code(), -32000) << wrong;
  }
}

TEST_F(HandlesTest, ATaskThatWasGivenOutStaysForADayAfterItsEnd) {
  settings.keep_tasks = 1;
  begin_again();
  submit_with_handle();
  const std::string handle = give(1);
  for (int i = 0; i < 4; ++i) submit();
  for (TaskId id = 1; id <= 4; ++id) run_exits({id, 1}, 0);
  EXPECT_TRUE(supervisor->find(1));
  EXPECT_FALSE(supervisor->find(2));
  advance(std::chrono::hours(25));
  run_exits({5, 1}, 0);
  EXPECT_FALSE(supervisor->find(1));
  EXPECT_FALSE(handles->find(handle));
  EXPECT_FALSE(store->read([](StoreReader& reader) { return Handles::has_one(reader, 1); }).value());
}

TEST_F(HandlesTest, ManyThatWereGivenOutDoNotKeepTheOthers) {
  constexpr TaskId given_out = 1100;
  settings.keep_tasks = 1;
  settings.max_running = given_out + 10;
  begin_again();
  for (TaskId id = 1; id <= given_out + 4; ++id) {
    supervisor->submit(
        {.prompt = "true"}, [](const tl::expected<Accepted, rpc::Error>&) {},
        id <= given_out ? Handles::for_new_task() : Companion{});
  }
  ASSERT_TRUE(turn_until([&] { return started().size() == given_out + 4; }));
  for (TaskId id = 1; id <= given_out + 3; ++id) {
    tell.ended({id, 1}, {.kind = Outcome::Kind::exited, .code = 0, .ended_at = clock.utc()});
    tell.gone({id, 1});
  }
  ASSERT_TRUE(turn_until([&] { return !supervisor->find(given_out + 1) && !supervisor->find(given_out + 3); }));
  EXPECT_TRUE(supervisor->find(1));
  EXPECT_TRUE(supervisor->find(given_out));
}

}  // namespace
}  // namespace duet::task
