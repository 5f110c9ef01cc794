#include "app/metrics/metrics.h"

#include <chrono>

#include <gtest/gtest.h>

#include "task/time_text.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

class MetricsTest : public ::testing::Test {
 protected:
  void tell(const char* kind, const std::string& params = "{}") {
    metrics.take({.seq = 1, .kind = kind, .task = 1, .params = params});
  }
  void turn(base::Duration took, std::uint64_t handled = 0) {
    requests += handled;
    metrics.take_turn(clock.now(), took, requests);
  }
  MetricSeries series(double seconds = 60, std::size_t points = 6) {
    return metrics.series(clock.utc(), seconds, points);
  }
  Metrics made() {
    return {clock,
            {.levels = [this] { return levels; },
             .memory =
                 [this] {
                   ++memory_reads;
                   return std::uint64_t{50} * 1024 * 1024;
                 }}};
  }

  base::VirtualClock clock{base::UtcTime(1'800'000'000s)};
  std::uint64_t requests = 0;
  MetricLevels levels{.queued = 2, .running = 1, .clients = 4};
  int memory_reads = 0;
  Metrics metrics = made();
};

TEST_F(MetricsTest, ARequestTookAsLongAsItsTurn) {
  turn(100us, 3);
  turn(9ms);
  clock.advance(1s);
  const MetricSeries told = series();
  EXPECT_EQ(told.requests.back(), 3U);
  EXPECT_NEAR(told.requestP50.back().value(), 100, 13);
  EXPECT_NEAR(told.requestP99.back().value(), 100, 13);
  EXPECT_NEAR(told.lagP99.back().value(), 9, 1.2);
}

TEST_F(MetricsTest, LevelsAreTheLargest) {
  turn(1us);
  levels.clients = 9;
  metrics.levels_changed();
  levels.clients = 5;
  metrics.levels_changed();
  EXPECT_EQ(series().clients.back(), 9U);
  clock.advance(30s);
  const MetricSeries later = series();
  EXPECT_EQ(later.clients.back(), 5U);
  EXPECT_EQ(later.queued.back(), 2U);
  EXPECT_EQ(later.memory.back(), 50U * 1024 * 1024);
}

TEST_F(MetricsTest, TasksAreCountedByHowTheyEnd) {
  metrics.take({.seq = 1, .kind = "taskQueued", .task = 1, .arrived_at = task::parse_time("2027-01-15T08:00:00.000Z")});
  tell("taskStarted", R"({"startedAt":"2027-01-15T08:00:04.000Z"})");
  tell("taskCompleted", R"({"startedAt":"2027-01-15T08:00:04.000Z","completedAt":"2027-01-15T08:01:04.000Z"})");
  tell("taskFailed");
  tell("taskFailed");
  tell("taskCancelled");
  tell("taskEdited");
  const MetricSeries told = series();
  EXPECT_EQ(told.submitted.back(), 1U);
  EXPECT_EQ(told.completed.back(), 1U);
  EXPECT_EQ(told.failed.back(), 2U);
  EXPECT_EQ(told.cancelled.back(), 1U);
  EXPECT_NEAR(told.waitP50.back().value(), 4, 0.5);
  EXPECT_NEAR(told.runP95.back().value(), 60, 7.5);
}

TEST_F(MetricsTest, WhatHappenedBeforeAPauseStaysThere) {
  turn(1us, 5);
  clock.advance(45s);
  turn(1us, 2);
  EXPECT_EQ(series().requests, (MetricSeries::Whole{std::nullopt, 5, 0, 0, 0, 2}));
}

TEST_F(MetricsTest, MemoryIsAskedForNowAndThenOnly) {
  for (int i = 0; i < 100; ++i) {
    turn(1us);
    clock.advance(100ms);
  }
  EXPECT_EQ(memory_reads, 1);
  clock.advance(1s);
  turn(1us);
  EXPECT_EQ(memory_reads, 2);
}

TEST_F(MetricsTest, TheNextDaemonKnowsThem) {
  turn(1us, 5);
  const std::string kept = metrics.bytes();
  clock.advance(30s);
  requests = 0;
  Metrics next = made();
  EXPECT_TRUE(next.restore(kept));
  clock.advance(10s);
  next.take_turn(clock.now(), 1us, 0);
  const MetricSeries told = next.series(clock.utc(), 60, 6);
  EXPECT_EQ(told.requests, (MetricSeries::Whole{std::nullopt, std::nullopt, 5, std::nullopt, std::nullopt, 0}));
  EXPECT_FALSE(next.restore("nonsense"));
}

TEST_F(MetricsTest, PrometheusIsToldTotalsAndLevels) {
  turn(100us, 3);
  tell("taskFailed");
  clock.advance(400s);
  turn(2ms, 1);
  const std::string text = metrics.prometheus_text();
  for (const char* const line :
       {"\nduet_requests_total 4\n", "\nduet_tasks_ended_total{state=\"failed\"} 1\n", "\nduet_clients 4\n",
        "\nduet_tasks_queued 2\n", "\nduet_memory_bytes 52428800\n", "\nduet_start_time_seconds 1800000000\n",
        "\nduet_task_run_seconds{percentile=\"95\"} NaN\n", "\n# TYPE duet_requests_total counter\n"}) {
    EXPECT_NE(('\n' + text).find(line), std::string::npos) << line << text;
  }
  const std::size_t at = text.find("\nduet_request_seconds{percentile=\"50\"} ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(text.substr(text.find("} ", at) + 2)), 0.002, 0.0003) << "of the last 5 minutes";
}

}  // namespace
}  // namespace duet::app
