#include "app/daemon/kept_metrics.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "duet/base/log_tape_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

class KeptMetricsTest : public testing::Test {
 protected:
  KeptMetrics made() {
    return {loop, tape.log(), folder, [] { return MetricLevels{}; }};
  }
  void turn(KeptMetrics& metrics) {
    ++requests;
    metrics.metrics().take_turn(loop.now(), 1us, requests);
  }
  static std::uint64_t requests_in(KeptMetrics& metrics, const base::Clock& clock) {
    std::uint64_t sum = 0;
    for (const auto& count : metrics.metrics().series(clock.utc(), 3600, 60).requests) sum += count.value_or(0);
    return sum;
  }
  std::string logged() {
    std::string all;
    for (const std::string& line : tape.lines()) all += line + '\n';
    return all;
  }
  bool has_file() const { return !folder.read_small(metrics_name).empty(); }

  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
  base::VirtualClock clock{base::UtcTime(1'800'000'000s)};
  transport::Loop loop{clock};
  base::LogTape tape;
  std::uint64_t requests = 0;
};

TEST_F(KeptMetricsTest, AreThereForTheNextDaemon) {
  KeptMetrics first = made();
  turn(first);
  first.save();
  requests = 0;
  clock.advance(60s);
  KeptMetrics next = made();
  turn(next);
  EXPECT_EQ(requests_in(next, clock), 2U);
  EXPECT_EQ(logged(), "");
}

TEST_F(KeptMetricsTest, AreWrittenNowAndThenWhileSomethingHappens) {
  KeptMetrics metrics = made();
  turn(metrics);
  clock.advance(9min);
  turn(metrics);
  EXPECT_FALSE(has_file());
  clock.advance(1min);
  turn(metrics);
  EXPECT_TRUE(has_file());
  folder.remove(metrics_name);
  clock.advance(9min);
  turn(metrics);
  EXPECT_FALSE(has_file());
}

TEST_F(KeptMetricsTest, BeginAnewWhenTheFileIsDamaged) {
  folder.write_small(metrics_name, "duet-rpc metrics 2 668\nnonsense");
  KeptMetrics metrics = made();
  turn(metrics);
  EXPECT_EQ(requests_in(metrics, clock), 1U);
  EXPECT_NE(logged().find("makes no sense"), std::string::npos) << logged();
}

TEST_F(KeptMetricsTest, GoOnWhenTheyCannotBeWritten) {
  KeptMetrics metrics = made();
  std::filesystem::remove_all(place.state());
  metrics.save();
  EXPECT_NE(logged().find("metrics are not kept"), std::string::npos) << logged();
}

TEST_F(KeptMetricsTest, KnowTheMemory) {
  KeptMetrics metrics = made();
  turn(metrics);
  EXPECT_GT(metrics.metrics().series(clock.utc(), 60, 2).memory.back().value(), 1U << 20);
}

}  // namespace
}  // namespace duet::app
