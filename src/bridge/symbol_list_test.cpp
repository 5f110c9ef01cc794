#include "bridge/symbol_list.h"

#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

using Names = std::vector<std::string>;

struct SymbolListTest : testing::Test {
  std::vector<FoundSymbol> list(const std::string& result, const std::string& path = "/p/a.cpp") {
    PlaceFinder places(documents, Encoding::utf16);
    return list_symbols(rpc::parse_value(result), path, places);
  }
  static Names paths(const std::vector<FoundSymbol>& symbols) {
    Names all;
    for (const FoundSymbol& symbol : symbols) all.push_back(symbol.name.path);
    return all;
  }
  static boost::json::object refusal(const std::vector<FoundSymbol>& symbols, const std::string& wanted) {
    try {
      pick_symbol(symbols, wanted);
    } catch (const rpc::Error& error) {
      return rpc::parse_value(error.data()).as_object();
    }
    return {};
  }

  Documents documents{[](std::string_view, const std::string&) {}};
};

std::string range(int line) {
  const std::string number = std::to_string(line);
  return R"({"start":{"line":)" + number + R"(,"character":4},"end":{"line":)" + number + R"(,"character":9}})";
}

std::string nested(const std::string& name, int line, const std::string& more = "") {
  return R"({"name":")" + name + R"(","kind":6,"range":)" + range(line) + R"(,"selectionRange":)" + range(line) + more +
         "}";
}

std::string flat(const std::string& name, const std::string& container, const std::string& file, int line) {
  return R"({"name":")" + name + R"(","kind":12,"containerName":")" + container + R"(","location":{"uri":"file://)" +
         file + R"(","range":)" + range(line) + "}}";
}

TEST_F(SymbolListTest, NestedOnesHaveThePathOfWhatTheyAreIn) {
  const std::string inner =
      nested("Server", 1, R"(,"children":[)" + nested("start", 2) + "," + nested("stop", 3) + "]");
  const auto symbols = list("[" + nested("app", 0, R"(,"children":[)" + inner + "]") + "]");
  EXPECT_EQ(paths(symbols), (Names{"app", "app::Server", "app::Server::start", "app::Server::stop"}));
  EXPECT_EQ(symbols[2].line, 3U);
  EXPECT_EQ(symbols[2].column, 5U);
  EXPECT_EQ(symbols[2].file, "/p/a.cpp");
  EXPECT_EQ(symbols[2].shown.at("kind"), "method");
  EXPECT_EQ(symbols[2].shown.at("extent").at("endLine"), 3);
}

TEST_F(SymbolListTest, FlatOnesHaveTheirContainerInFront) {
  const auto symbols = list("[" + flat("start", "Server", "/p/a.py", 1) + "," + flat("pkg.Start", "pkg", "/p/a.go", 2) +
                                "," + flat("alone", "", "/p/a.py", 3) + "]",
                            "");
  EXPECT_EQ(paths(symbols), (Names{"Server.start", "pkg.Start", "alone"}));
  EXPECT_EQ(symbols[0].file, "/p/a.py");
  EXPECT_EQ(symbols[0].shown.at("file"), "/p/a.py");
}

TEST_F(SymbolListTest, APlaceIsThatOfTheName) {
  documents.client_opens(1, "/p/a.py", "python", "\n    def go(self):\n");
  const std::string whole = R"({"start":{"line":1,"character":4},"end":{"line":9,"character":0}})";
  const auto symbols =
      list(R"([{"name":"go","kind":6,"location":{"uri":"file:///p/a.py","range":)" + whole + "}}]", "");
  EXPECT_EQ(symbols[0].line, 2U);
  EXPECT_EQ(symbols[0].column, 9U);
  EXPECT_EQ(symbols[0].shown.at("endColumn"), 11);
  EXPECT_EQ(symbols[0].shown.at("extent").at("column"), 5);
}

TEST_F(SymbolListTest, NonsenseIsNothing) {
  for (const char* const result : {"null", "{}", "7", R"([7,{},{"name":""},null])"}) {
    EXPECT_TRUE(list(result).empty()) << result;
  }
}

TEST_F(SymbolListTest, OneIsPickedOrTheCandidatesAreNamed) {
  const auto symbols =
      list("[" + flat("start", "Server", "/p/s.cpp", 40) + "," + flat("start", "Client", "/p/c.cpp", 16) + "]", "");
  EXPECT_EQ(pick_symbol(symbols, "Client.start").file, "/p/c.cpp");
  const boost::json::object several = refusal(symbols, "start");
  EXPECT_EQ(several.at("reason"), "ambiguous");
  EXPECT_EQ(several.at("count"), 2);
  EXPECT_EQ(rpc::to_text(several.at("candidates").at(0)),
            R"({"path":"Server::start","kind":"function","file":"/p/s.cpp","line":41,"column":5})");
  const boost::json::object none = refusal(symbols, "strat");
  EXPECT_EQ(none.at("reason"), "not-found");
  EXPECT_EQ(rpc::to_text(none.at("near")), R"(["Server::start","Client::start"])");
}

TEST_F(SymbolListTest, ADeclarationAndItsDefinitionAreOne) {
  const std::string detail = R"x(,"detail":"int (int)")x";
  EXPECT_EQ(pick_symbol(list("[" + nested("f", 1, detail) + "," + nested("f", 9, detail) + "]"), "f").line, 10U);
  EXPECT_EQ(refusal(list("[" + nested("f", 1, detail) + "," + nested("f", 9, R"x(,"detail":"int ()")x") + "]"), "f")
                .at("reason"),
            "ambiguous");
  EXPECT_EQ(refusal(list("[" + nested("f", 1) + "," + nested("f", 9) + "]"), "f").at("reason"), "ambiguous");
}

TEST_F(SymbolListTest, ASearchShowsTheBestFirst) {
  const auto symbols = list("[" + nested("restart", 1) + "," + nested("other", 2) + "," + nested("start", 3) + "]");
  const boost::json::object found = shape_search(symbols, "start", 1000);
  ASSERT_EQ(found.at("symbols").as_array().size(), 2U);
  EXPECT_EQ(found.at("symbols").at(0).at("path"), "start");
  EXPECT_EQ(found.at("symbols").at(1).at("path"), "restart");
}

TEST_F(SymbolListTest, AnIndexMayBeOlderThanTheFile) {
  FoundSymbol symbol{.name = {"a::go", "go"}, .shown = {{"text", "void go();"}}};
  EXPECT_TRUE(is_where_it_was(symbol));
  symbol.shown["text"] = "void stop();";
  EXPECT_FALSE(is_where_it_was(symbol));
  EXPECT_FALSE(is_where_it_was({.name = {"go", "go"}}));
}

}  // namespace
}  // namespace duet::bridge
