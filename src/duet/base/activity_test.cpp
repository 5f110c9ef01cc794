#include "duet/base/activity.h"

#include <array>
#include <functional>

#include <gtest/gtest.h>

namespace duet::base {

struct Walker {
  std::function<void()> stroll() {
    return [this] { ++steps; };
  }
  std::function<void()> amble() const {
    return [] {};
  }
  int steps = 0;
};

namespace {

struct Hidden {};

TEST(Activity, IsNamedByTheClassThatWasCalled) {
  EXPECT_EQ(to_text({.callback = &typeid(Walker)}), "base::Walker");
  EXPECT_EQ(to_text({.callback = &typeid(Hidden)}), "base::Hidden");
}

TEST(Activity, ATaskIsNamedByTheFunctionThatMadeIt) {
  EXPECT_EQ(to_text({.callback = &Walker().stroll().target_type()}), "base::Walker::stroll");
  EXPECT_EQ(to_text({.callback = &Walker().amble().target_type()}), "base::Walker::amble");
}

TEST(Activity, HasTheMethodBehindIt) {
  EXPECT_EQ(to_text({.callback = &typeid(Walker), .method = "task.submit"}), "base::Walker, task.submit");
  EXPECT_EQ(to_text({.callback = nullptr, .method = "ping"}), "ping");
  EXPECT_EQ(to_text({}), "");
}

TEST(Activity, WhatHasNoNameIsShownAsItIs) {
  EXPECT_EQ(to_text({.callback = &typeid(void (*)())}), typeid(void (*)()).name());
}

TEST(Activity, IsCutWhereThereIsNoRoom) {
  std::array<char, 8> room{};
  EXPECT_EQ(write_text({.callback = &typeid(Walker)}, room), 8U);
  EXPECT_EQ(std::string_view(room.data(), room.size()), "base::Wa");
}

}  // namespace
}  // namespace duet::base
