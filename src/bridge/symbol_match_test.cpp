#include "bridge/symbol_match.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::bridge {
namespace {

using Names = std::vector<std::string>;
using Indices = std::vector<std::size_t>;

TEST(SymbolMatch, ComponentsAreRunsOfLettersDigitsUnderscoresAndDollars) {
  const auto found = components("(*Server).Start$2::ä_b->operator==");
  EXPECT_EQ(Names(found.begin(), found.end()), (Names{"Server", "Start$2", "ä_b", "operator"}));
  EXPECT_TRUE(components("==").empty());
}

TEST(SymbolMatch, TheStepsComeInTheirOrder) {
  const SymbolName start{"app::Server::start", "start"};
  EXPECT_EQ(match_step(start, "app::Server::start"), 0);
  EXPECT_EQ(match_step(start, "start"), 1);
  EXPECT_EQ(match_step(start, "Server.start"), 2);
  EXPECT_EQ(match_step(start, "app.Server.start"), 2);
  EXPECT_EQ(match_step(start, "Server"), std::nullopt);
  EXPECT_EQ(match_step(start, "tart"), std::nullopt);
  const SymbolName go{"(*Server).Start", "(*Server).Start"};
  EXPECT_EQ(match_step(go, "(*Server).Start"), 0);
  EXPECT_EQ(match_step(go, "Server.Start"), 2);
  EXPECT_EQ(match_step(go, "Server"), 3);
  const SymbolName erlang{"mod:foo/1", "foo/1"};
  EXPECT_EQ(match_step(erlang, "foo/1"), 1);
  EXPECT_EQ(match_step(erlang, "mod:foo"), 3);
  EXPECT_EQ(match_step(erlang, "mod"), std::nullopt);
}

TEST(SymbolMatch, OnlyTheFirstStepWithAHitCounts) {
  const std::vector<SymbolName> all{{"Server::start", "start"}, {"start", "start"}, {"Client::start", "start"}};
  EXPECT_EQ(best_matches(all, "start"), (Indices{1}));
  EXPECT_EQ(best_matches({all[0], all[2]}, "start"), (Indices{0, 1}));
  EXPECT_EQ(best_matches(all, "Client.start"), (Indices{2}));
  EXPECT_TRUE(best_matches(all, "stop").empty());
}

TEST(SymbolMatch, OperatorsAreToldApartByTheirWholeNames) {
  const std::vector<SymbolName> all{{"A::operator==", "operator=="}, {"A::operator!=", "operator!="}};
  EXPECT_EQ(best_matches(all, "operator=="), (Indices{0}));
  EXPECT_EQ(best_matches(all, "A::operator!="), (Indices{1}));
}

TEST(SymbolMatch, EveryPathIsAcceptedBack) {
  for (const char* const path : {"foo/1", "operator==", "(anonymous namespace)::x", "<lambda>", "[0]", "a b", "=="}) {
    EXPECT_EQ(match_step({path, path}, path), 0) << path;
  }
}

TEST(SymbolMatch, NearNamesAreThoseThatMayHaveBeenMeant) {
  const std::vector<SymbolName> all{
      {"Server::start", "start"}, {"Server::restart", "restart"}, {"stat", "stat"}, {"unrelated", "unrelated"}};
  EXPECT_EQ(near_names(all, "strat"), (Names{"stat", "Server::start"}));
  EXPECT_EQ(near_names(all, "Start"), (Names{"Server::start", "Server::restart", "stat"}));
  EXPECT_TRUE(near_names(all, "x").empty());
  EXPECT_TRUE(near_names(all, "").empty());
  EXPECT_EQ(near_names(std::vector<SymbolName>(9, {"a::go", "go"}), "og"), (Names{"a::go"}));
}

TEST(SymbolMatch, ANearNameIsFoundBehindManyThatAreFar) {
  std::vector<SymbolName> all(100'000, {"a::quite_different", "quite_different"});
  all.push_back({"Server::start", "start"});
  EXPECT_EQ(near_names(all, "strat"), (Names{"Server::start"}));
}

TEST(SymbolMatch, ASearchFindsPartsOfNamesWhateverTheCase) {
  EXPECT_TRUE(is_found({"Server::reStart", "reStart"}, "start"));
  EXPECT_FALSE(is_found({"start::other", "other"}, "start"));
}

TEST(SymbolMatch, AWordIsFoundWhereItIsWhole) {
  EXPECT_EQ(find_word("restart start", "start"), 8U);
  EXPECT_EQ(find_word("starts", "start"), std::nullopt);
  EXPECT_EQ(find_word("a.start()", "start"), 2U);
  EXPECT_EQ(find_word("x operator==(y)", "operator=="), 2U);
  EXPECT_EQ(find_word("größe", "gr"), std::nullopt);
  EXPECT_EQ(find_word("x", ""), std::nullopt);
}

}  // namespace
}  // namespace duet::bridge
