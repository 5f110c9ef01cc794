#include "app/methods/metrics_methods.h"

#include <chrono>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "app/doors/roles.h"
#include "duet/peer/conversation.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using boost::json::object;
using boost::json::value;

class MetricsMethods : public testing::Test {
 protected:
  MetricsMethods() { add_metrics_methods(methods, clock, metrics); }

  object ask(const std::string& params) {
    peer::Conversation conversation(peer::Protocol::one_message(), methods);
    conversation.receive(R"({"jsonrpc":"2.0","id":1,"method":"daemon.metrics","params":)" + params + "}", clock.now());
    conversation.end_of_input(clock.now());
    std::string text;
    for (std::string_view part = conversation.output(); !part.empty(); part = conversation.output()) {
      text += part;
      conversation.written(part.size());
    }
    return boost::json::parse(text).as_object();
  }
  object result(const std::string& params) { return ask(params).at("result").as_object(); }

  base::VirtualClock clock{base::UtcTime(1'800'000'000s)};
  Metrics metrics{clock, {.levels = [] { return MetricLevels{}; }, .memory = [] { return 0; }}};
  peer::Methods methods;
};

TEST_F(MetricsMethods, AnHourInHalfMinutesUnlessSaidOtherwise) {
  const object told = result("{}");
  EXPECT_EQ(told.at("from"), "2027-01-15T07:00:00.000Z");
  EXPECT_EQ(told.at("to"), "2027-01-15T08:00:00.000Z");
  EXPECT_EQ(told.at("step").to_number<double>(), 30);
  const object& series = told.at("series").as_object();
  EXPECT_EQ(series.size(), 16U);
  for (const auto& [name, numbers] : series) EXPECT_EQ(numbers.as_array().size(), 120U) << name;
}

TEST_F(MetricsMethods, NumbersWhereThereIsADaemonAndNullBefore) {
  metrics.levels_changed();
  clock.advance(2s);
  const object told = result(R"({"seconds":60,"points":2})");
  EXPECT_EQ(told.at("series").at("requests"), (boost::json::array{nullptr, 0}));
  EXPECT_EQ(told.at("series").at("lagP99"), (boost::json::array{nullptr, nullptr}));
  EXPECT_EQ(told.at("step").to_number<double>(), 30);
}

TEST_F(MetricsMethods, TheBoundsAreKept) {
  for (const char* const good : {R"([60,2])", R"([86400,720])", R"({"seconds":60,"points":720})"}) {
    EXPECT_TRUE(ask(good).contains("result")) << good;
  }
  for (const char* const bad :
       {R"([59])", R"([86401])", R"([3600,1])", R"([3600,721])", R"([-1])", R"(["60"])", R"([60.5])"}) {
    EXPECT_EQ(ask(bad).at("error").at("code"), -32602) << bad;
  }
  EXPECT_EQ(ask("[59]").at("error").at("data").at("expected"), "integer from 60 to 86400");
}

TEST_F(MetricsMethods, WhoObservesMayAsk) { EXPECT_EQ(methods.find("daemon.metrics")->needs, role::observe); }

}  // namespace
}  // namespace duet::app
