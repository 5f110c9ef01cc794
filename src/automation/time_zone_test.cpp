#include "automation/time_zone.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "automation/cron.h"
#include "automation/zone_test.h"

namespace duet::automation {
namespace {

TEST(TimeZone, AgreesWithTheLibraryOnAllTimes) {
  std::mt19937_64 random(7);
  for (const char* name : {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC",
                           "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Auckland", "Europe/Dublin"}) {
    const std::shared_ptr<const TimeZone> zone = TimeZone::find(name);
    ASSERT_NE(zone, nullptr) << name;
    const Zone local(name);
    for (int i = 0; i < 2'000; ++i) {
      const time_t when = static_cast<time_t>(random() % 4'000'000'000) - 500'000'000;  // until 2080
      tm parts{};
      localtime_r(&when, &parts);
      ASSERT_EQ(zone->offset_at(std::chrono::sys_seconds(std::chrono::seconds(when))).count(), parts.tm_gmtoff)
          << name << " at " << when;
    }
  }
}

TEST(TimeZone, AWrongNameIsNone) {
  for (const char* name : {"", "Europe/Berlln", "../../../etc/passwd", "/etc/localtime", "Europe", "tzdata.zi"}) {
    EXPECT_EQ(TimeZone::find(name), nullptr) << name;
  }
}

TEST(TimeZone, BytesThatAreNoneAreNone) {
  EXPECT_EQ(TimeZone::read(""), nullptr);
  EXPECT_EQ(TimeZone::read("TZif2" + std::string(39, '\xFF')), nullptr);
  EXPECT_EQ(TimeZone::read(std::string("TZif2") + std::string(200, '\0')), nullptr);
}

TEST(TimeZone, AScheduleGoesByIt) {
  const auto cron = std::get<Cron>(parse_cron("30 2 * * *", TimeZone::find("Europe/Berlin")));
  EXPECT_EQ(cron.next(utc("2026-06-01T12:00:00Z")), utc("2026-06-02T00:30:00Z"));
  EXPECT_EQ(cron.next(utc("2026-03-28T12:00:00Z")), utc("2026-03-29T01:00:00Z")) << "in the gap: right after it";
  EXPECT_EQ(std::get<Cron>(parse_cron("@daily", TimeZone::find("Asia/Tokyo"))).next(utc("2026-06-01T12:00:00Z")),
            utc("2026-06-01T15:00:00Z"));
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_cron("@fortnightly")));
}

}  // namespace
}  // namespace duet::automation
