#include "app/doors/tokens.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"
#include "app/words/sha256.h"
#include "duet/base/fd.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

constexpr base::UtcTime now{1'700'000'000s};

/// Tokens in a folder of their own; begin_anew() is the next daemon.
struct TokensTest : testing::Test {
  TokensTest() {
    std::filesystem::create_directories(place.state());
    folder.reset(open(place.state().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    begin_anew();
  }

  void begin_anew(TokenLimits limits = {}) {
    tokens = std::make_unique<Tokens>(
        folder.get(), ".aiwg/daemon",
        Tokens::Events{
            .on_ended = [this](const std::shared_ptr<const peer::Admission>& who) { ended.push_back(who->name); },
            .on_problem = [this](std::string text) { problem = std::move(text); }},
        limits);
  }
  std::string create(const std::string& name, std::string_view role = "own",
                     std::optional<base::UtcTime> expires = std::nullopt, base::UtcTime when = now) {
    const auto made = tokens->create(name, role, expires, when);
    EXPECT_TRUE(made) << made.error().message();
    return made ? made->token : "";
  }
  std::string log_in(base::UtcTime when = now) {
    const auto made = tokens->create_for_browser("own", when);
    EXPECT_TRUE(made) << made.error().message();
    return made ? made->token : "";
  }
  std::string name_of(std::string_view token, base::UtcTime when = now) {
    const auto found = tokens->find(token, when);
    return found ? found->name : "nobody";
  }
  Names names(base::UtcTime when = now) {
    Names out;
    const auto listed = tokens->list(when);
    EXPECT_TRUE(listed);
    if (!listed) return out;
    for (const Tokens::Listed& token : *listed) out.push_back(token.name);
    return out;
  }
  std::string content() const { return TemporaryProject::read(file); }

  TemporaryProject place;
  std::filesystem::path file = place.state() / "tokens";
  base::Fd folder;
  Names ended;
  std::string problem;
  std::unique_ptr<Tokens> tokens;
};

TEST_F(TokensTest, ATokenLetsInAsWhatItWasMadeFor) {
  const std::string token = create("ci", "observe", now + 1h);
  EXPECT_EQ(token.size(), 48U);
  EXPECT_TRUE(token.starts_with("duet_"));
  const auto found = tokens->find(token, now);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->door, "http");
  EXPECT_EQ(found->name, "ci");
  EXPECT_EQ(found->role, "observe");
  EXPECT_EQ(found->expires, now + 1h);
  EXPECT_EQ(tokens->find(token, now), found) << "the same object each time";
}

TEST_F(TokensTest, AnythingElseLetsNobodyIn) {
  const std::string token = create("ci");
  for (const std::string& other :
       {std::string(), token + "x", token.substr(0, 47), "x" + token.substr(1), std::string(48, 'a'),
        "duet_" + std::string(43, 'A'), std::string("duet_"), sha256(token), token + std::string(1, '\0')}) {
    EXPECT_EQ(name_of(other), "nobody") << other;
  }
  for (std::size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'x' ? 'y' : 'x';
    EXPECT_EQ(name_of(changed), "nobody") << i;
  }
  EXPECT_EQ(name_of(token), "ci");
}

TEST_F(TokensTest, TheFileIsForItsOwnerAndHoldsNoToken) {
  const mode_t before = umask(0);
  const std::string token = create("ci");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  EXPECT_EQ(content().find(token), std::string::npos);
  EXPECT_EQ(content().find(token.substr(5)), std::string::npos);
  EXPECT_NE(content().find(sha256(token)), std::string::npos);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(place.state())) ++files;
  EXPECT_EQ(files, 1U) << "nothing is left beside it";
}

TEST_F(TokensTest, OutliveTheDaemon) {
  const std::string one = create("one", "operate", now + 1h);
  const std::string two = create("two");
  ASSERT_TRUE(tokens->revoke("two"));
  const std::string browser = log_in();
  begin_anew();
  EXPECT_EQ(name_of(one), "one");
  EXPECT_EQ(tokens->find(one, now)->role, "operate");
  EXPECT_EQ(name_of(two), "nobody");
  EXPECT_EQ(name_of(browser), "browser-1");
  EXPECT_EQ(problem, "");
}

TEST_F(TokensTest, NamesAreThereOnceAndOfFewCharacters) {
  create("ci");
  const auto again = tokens->create("ci", "own", std::nullopt, now);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), rpc::code::invalid_params);
  EXPECT_NE(again.error().data().find("name"), std::string::npos);
  for (const std::string& name : {std::string(), std::string("a b"), std::string(65, 'a'), std::string("ä")}) {
    EXPECT_FALSE(tokens->create(name, "own", std::nullopt, now)) << name;
  }
  ASSERT_TRUE(tokens->revoke("ci"));
  create("ci");
}

TEST_F(TokensTest, ANameIsFreeWhenItsTokenHasExpired) {
  create("ci", "own", now + 1h);
  create("ci", "own", std::nullopt, now + 1h);
  EXPECT_EQ(ended, Names{"ci"});
}

TEST_F(TokensTest, RevokingEndsATokenAtOnceAndTells) {
  const std::string token = create("ci");
  const std::string other = create("other");
  ASSERT_TRUE(tokens->revoke("ci"));
  EXPECT_EQ(ended, Names{"ci"});
  EXPECT_EQ(name_of(token), "nobody");
  EXPECT_EQ(name_of(other), "other");
  const auto unknown = tokens->revoke("ci");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), rpc::code::invalid_params);
}

TEST_F(TokensTest, WhoeverLogsOutEndsHisOwnToken) {
  const std::string token = log_in();
  const std::string other = log_in();
  const auto who = tokens->find(token, now);
  ASSERT_TRUE(tokens->log_out(*who));
  EXPECT_EQ(ended, Names{"browser-1"});
  EXPECT_EQ(name_of(token), "nobody");
  EXPECT_EQ(name_of(other), "browser-2");
  EXPECT_TRUE(tokens->log_out(*who)) << "a second time changes nothing";
  EXPECT_EQ(ended.size(), 1U);
}

TEST_F(TokensTest, AllOfThemCanBeRevoked) {
  create("ci");
  log_in();
  EXPECT_EQ(tokens->revoke_all().value(), (Names{"ci", "browser-1"}));
  EXPECT_EQ(ended, (Names{"ci", "browser-1"}));
  EXPECT_EQ(names(), Names{});
  EXPECT_EQ(tokens->revoke_all().value(), Names{});
}

TEST_F(TokensTest, EndWhenTheirTimeHasCome) {
  const std::string token = create("ci", "own", now + 1h);
  const std::string ever = create("ever");
  EXPECT_EQ(tokens->next_end(), now + 1h);
  EXPECT_EQ(name_of(token, now + 1h - 1ms), "ci");
  EXPECT_EQ(name_of(token, now + 1h), "nobody") << "whether or not somebody has looked at the clock";
  EXPECT_EQ(ended, Names{});
  tokens->tick(now + 1h - 1ms);
  EXPECT_EQ(ended, Names{});
  tokens->tick(now + 1h);
  EXPECT_EQ(ended, Names{"ci"});
  EXPECT_EQ(tokens->next_end(), std::nullopt);
  EXPECT_EQ(name_of(ever, now + 24h * 36500), "ever");
  begin_anew();
  EXPECT_EQ(names(), Names{"ever"});
}

TEST_F(TokensTest, AnEndInTheMiddleOfAConnectionIsToldOfAll) {
  const std::string token = create("ci", "own", now + 1h);
  const auto held = tokens->find(token, now);
  tokens->tick(now + 1h);
  EXPECT_EQ(ended, Names{"ci"}) << "only browsers' tokens are kept by being used";
}

TEST_F(TokensTest, ABrowsersTokenEndsWhenItWasNotUsed) {
  tokens->set_session(1h);
  const std::string token = log_in();
  EXPECT_EQ(name_of(token, now + 59min), "browser-1");
  EXPECT_EQ(name_of(token, now + 118min), "browser-1");
  EXPECT_EQ(tokens->find(token, now + 118min)->expires, now + 178min);
  tokens->tick(now + 177min);
  EXPECT_EQ(ended, Names{});
  EXPECT_EQ(name_of(token, now + 178min), "nobody");
  tokens->tick(now + 178min);
  EXPECT_EQ(ended, Names{"browser-1"});
}

TEST_F(TokensTest, ABrowsersTokenIsUsedAsLongAsAConnectionHoldsIt) {
  tokens->set_session(1h);
  const std::string token = log_in();
  auto held = tokens->find(token, now);
  for (base::UtcTime time = now; time < now + 3h; time = std::max(time + 1s, tokens->next_end().value())) {
    tokens->tick(time);
    EXPECT_LE(tokens->next_end().value(), time + 1h);
  }
  EXPECT_EQ(ended, Names{});
  EXPECT_GT(held->expires.value(), now + 3h);
  begin_anew();
  tokens->set_session(1h);
  EXPECT_EQ(name_of(token, now + 3h + 30min), "browser-1") << "it was written down";
}

TEST_F(TokensTest, AShorterSessionCountsForThoseThereAre) {
  const std::string token = log_in();
  EXPECT_EQ(tokens->find(token, now)->expires, now + Tokens::usual_session);
  tokens->set_session(1h);
  EXPECT_EQ(tokens->find(token, now)->expires, now + 1h);
  EXPECT_EQ(name_of(token, now + 1h), "nobody");
}

TEST_F(TokensTest, UseIsWrittenAtMostOnceAMinute) {
  tokens->set_session(1h);
  const std::string token = log_in();
  std::size_t changes = 0;
  std::string before = content();
  for (int second = 0; second < 600; ++second) {
    EXPECT_EQ(name_of(token, now + std::chrono::seconds(second)), "browser-1");
    if (content() != before) ++changes;
    before = content();
  }
  EXPECT_GE(changes, 8U);
  EXPECT_LE(changes, 10U);
}

TEST_F(TokensTest, UseOfALongSessionIsWrittenByTheHundredthOfIt) {
  const std::string token = log_in();
  const std::string before = content();
  EXPECT_EQ(name_of(token, now + 100min), "browser-1");
  EXPECT_EQ(content(), before);
  EXPECT_EQ(name_of(token, now + 101min), "browser-1");
  EXPECT_NE(content(), before);
}

TEST_F(TokensTest, BrowsersNumbersAreNotGivenTwice) {
  log_in();
  log_in();
  ASSERT_TRUE(tokens->revoke("browser-2"));
  create("browser-3");
  EXPECT_EQ(name_of(log_in()), "browser-4");
  begin_anew();
  ASSERT_TRUE(tokens->revoke("browser-4"));
  begin_anew();
  EXPECT_EQ(name_of(log_in()), "browser-5");
}

TEST_F(TokensTest, SoManyAreMadeAndNoMore) {
  begin_anew({.made = 2, .browsers = 2});
  create("a");
  create("b", "own", now + 1h);
  const auto third = tokens->create("c", "own", std::nullopt, now);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), -32003);
  create("c", "own", std::nullopt, now + 1h);
}

TEST_F(TokensTest, ABrowserTooManyPushesOutTheOneThatWasUsedTheLongestAgo) {
  begin_anew({.made = 2, .browsers = 3});
  create("a");
  const std::string first = log_in();
  log_in(now + 1min);
  log_in(now + 2min);
  EXPECT_EQ(name_of(first, now + 3min), "browser-1");
  log_in(now + 4min);
  EXPECT_EQ(ended, Names{"browser-2"});
  const auto held = tokens->find(first, now + 5min);
  log_in(now + 6min);
  EXPECT_EQ(ended, (Names{"browser-2", "browser-3"}));
  EXPECT_EQ(names(now + 6min), (Names{"a", "browser-1", "browser-4", "browser-5"}));
}

TEST_F(TokensTest, AreListedWithoutWhatTheySay) {
  create("ci", "observe", now + 1h);
  const std::string token = log_in(now + 1min);
  name_of(token, now + 2min);
  const auto listed = tokens->list(now + 3min).value();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed[0].role, "observe");
  EXPECT_EQ(listed[0].created, now);
  EXPECT_EQ(listed[0].used, std::nullopt);
  EXPECT_EQ(listed[0].expires, now + 1h);
  EXPECT_FALSE(listed[0].browser);
  EXPECT_EQ(listed[1].used, now + 2min);
  EXPECT_EQ(listed[1].expires, now + 2min + Tokens::usual_session);
  EXPECT_TRUE(listed[1].browser);
}

TEST_F(TokensTest, ADamagedFileLetsNobodyInAndIsAProblem) {
  const std::string token = create("ci");
  const std::string whole = content();
  TemporaryProject::write(file, whole.substr(0, whole.size() / 2));
  begin_anew();
  EXPECT_EQ(name_of(token), "nobody");
  EXPECT_NE(problem.find(".aiwg/daemon/tokens is not used"), std::string::npos) << problem;
  EXPECT_NE(problem.find("token revoke --all"), std::string::npos);
  const auto made = tokens->create("new", "own", std::nullopt, now);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), -32003);
  EXPECT_FALSE(tokens->create_for_browser("own", now));
  EXPECT_FALSE(tokens->list(now));
  EXPECT_FALSE(tokens->revoke("ci"));
  tokens->tick(now);
  EXPECT_EQ(content(), whole.substr(0, whole.size() / 2)) << "it stays as it is, for who wants to look at it";
}

TEST_F(TokensTest, RevokingAllBeginsAnew) {
  TemporaryProject::write(file, "nonsense");
  begin_anew();
  EXPECT_NE(problem, "");
  EXPECT_EQ(tokens->revoke_all().value(), Names{});
  EXPECT_EQ(problem, "");
  const std::string token = create("ci");
  begin_anew();
  EXPECT_EQ(name_of(token), "ci");
}

TEST_F(TokensTest, WhatIsNoPlainFileOfOursIsNotUsed) {
  const std::string token = create("ci");
  std::filesystem::permissions(file, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  begin_anew();
  EXPECT_EQ(name_of(token), "nobody");
  EXPECT_NE(problem.find("others may write"), std::string::npos) << problem;
  std::filesystem::rename(file, place.state() / "elsewhere");
  std::filesystem::create_symlink("elsewhere", file);
  begin_anew();
  EXPECT_EQ(name_of(token), "nobody");
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  begin_anew();
  EXPECT_EQ(name_of(token), "nobody");
  EXPECT_NE(problem.find("no plain file"), std::string::npos) << problem;
}

TEST_F(TokensTest, WithoutAFileThereAreNone) {
  EXPECT_EQ(names(), Names{});
  EXPECT_EQ(problem, "");
  EXPECT_FALSE(std::filesystem::exists(file)) << "it is made with the first one";
}

TEST_F(TokensTest, ATokenThatCannotBeWrittenIsNotMadeAndOneThatIsRevokedEndsAllTheSame) {
  const std::string token = create("ci");
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);  // nothing can be renamed to that
  const auto made = tokens->create("new", "own", std::nullopt, now);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), -32003);
  EXPECT_NE(problem.find("cannot be written"), std::string::npos);
  EXPECT_EQ(names(), Names{"ci"});
  EXPECT_FALSE(tokens->revoke("ci"));
  EXPECT_EQ(ended, Names{"ci"});
  EXPECT_EQ(name_of(token), "nobody");
  std::filesystem::remove(file);
  create("later");
  EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace duet::app
