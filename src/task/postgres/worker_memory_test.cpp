#include "task/postgres/worker_memory.h"

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

TEST(WorkerMemory, IsReadAsItWasWritten) {
  const WorkerMemory memory{.queue = "q",
                            .place = "machine:1:2",
                            .worker = 7,
                            .incarnation = "i",
                            .before = {"b", "a"},
                            .next = "n",
                            .system = "71",
                            .timeline = 3,
                            .newest_event_ms = 12,
                            .lease_ms = 90'000};
  EXPECT_EQ(memory_of(memory_text(memory)), memory);
}

TEST(WorkerMemory, AnythingElseIsNone) {
  for (const char* text : {"", "{", "[]", "{}", "nonsense"}) EXPECT_FALSE(memory_of(text)) << text;
}

}  // namespace
}  // namespace duet::task::postgres
