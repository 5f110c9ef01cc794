#include "app/project/user_state.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "app/project/failure.h"
#include "app/project/running_daemon.h"
#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

/// A variable for as long as a test runs.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(UserState, IsWhereTheSpecificationHasIt) {
  const Variable home("HOME", "/users/me");
  {
    const Variable state("XDG_STATE_HOME", "/state");
    EXPECT_EQ(user_state_path(), "/state/duet-rpc");
  }
  const Variable relative("XDG_STATE_HOME", "state");
  EXPECT_EQ(user_state_path(), "/users/me/.local/state/duet-rpc");
  const Variable nowhere("HOME", nullptr);
  EXPECT_EQ(user_state_path(), "");
  EXPECT_THROW(make_user_folder(user_state_path()), Failure);
}

TEST(UserState, HasAPlaceForEachProject) {
  const Variable state("XDG_STATE_HOME", "/state");
  const std::string site = user_state_of("/srv/site");
  EXPECT_TRUE(site.starts_with("/state/duet-rpc/projects/site-")) << site;
  EXPECT_NE(site, user_state_of("/elsewhere/site"));
  EXPECT_EQ(site, user_state_of("/srv/site"));
  EXPECT_LT(user_state_of("/" + std::string(1000, 'x')).size(), 150U);
}

struct StateElsewhere : testing::Test {
  TemporaryProject place;
  TemporaryProject home;
  Variable variable{"XDG_STATE_HOME", home.path().c_str()};
};

TEST_F(StateElsewhere, IsPrivateAndKnowsItsProject) {
  EXPECT_FALSE(StateFolder::find(place.project(), StatePlace::user));
  const StateFolder folder = StateFolder::make(place.project(), StatePlace::user);
  EXPECT_FALSE(fs::exists(place.path() / ".aiwg"));
  EXPECT_EQ(folder.read_small("project"), place.path().string() + '\n');
  EXPECT_EQ(folder.shown(), user_state_of(place.path()));
  EXPECT_EQ(fs::status(folder.shown()).permissions(), fs::perms(0700));
  EXPECT_TRUE(StateFolder::find(place.project(), StatePlace::user));
}

TEST_F(StateElsewhere, ItsLockIsInPlaceUntilTheFolderIsReplaced) {
  const StateFolder folder = StateFolder::make(place.project(), StatePlace::user);
  const auto lock = DaemonLock::take(folder);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->is_in_place(place.project()));
  fs::remove_all(folder.shown());
  EXPECT_FALSE(lock->is_in_place(place.project()));
}

TEST_F(StateElsewhere, IsFoundWhereADaemonRuns) {
  EXPECT_FALSE(find_state(place.project(), StatePlace::project));
  const StateFolder other = StateFolder::make(place.project(), StatePlace::user);
  const StateFolder wanted = StateFolder::make(place.project());
  EXPECT_EQ(find_state(place.project(), StatePlace::project)->shown(), wanted.shown()) << "none runs";
  const auto lock = DaemonLock::take(other);
  EXPECT_EQ(find_state(place.project(), StatePlace::project)->shown(), other.shown());
  EXPECT_THROW(refuse_second_daemon(place.project(), StatePlace::project), Failure);
  EXPECT_NO_THROW(refuse_second_daemon(place.project(), StatePlace::user));
}

TEST(ReplacedFile, IsWholeAndPrivate) {
  const TemporaryProject place;
  const base::Fd folder = make_user_folder(place.path() / "a" / "b");
  EXPECT_TRUE(replace_file(folder.get(), "file", "one"));
  EXPECT_TRUE(replace_file(folder.get(), "file", "two"));
  EXPECT_EQ(TemporaryProject::read(place.path() / "a/b/file"), "two");
  EXPECT_EQ(fs::status(place.path() / "a/b/file").permissions(), fs::perms(0600));
  EXPECT_FALSE(replace_file(folder.get(), "no/such/folder", "x"));
}

}  // namespace
}  // namespace duet::app
