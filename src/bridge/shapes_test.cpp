#include "bridge/shapes.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "bridge/file_uri.h"
#include "duet/rpc/value.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::bridge {
namespace {

using boost::json::value;

class ShapesTest : public testing::Test {
 protected:
  ShapesTest() {
    path = folder.file("a.txt");
    std::ofstream(path) << "zero\n\xC3\xA4\xC3\xA4 one\n";
  }
  // The range of `one`, as a server that counts in UTF-8 has it.
  std::string range() const { return R"({"start":{"line":1,"character":5},"end":{"line":1,"character":8}})"; }
  static value parse(const std::string& text) { return rpc::parse_value(text); }

  transport::TemporaryFolder folder;
  std::string path;
  Documents documents{{}};
  PlaceFinder places{documents, Encoding::utf8};
};

TEST_F(ShapesTest, TakesEveryFormOfAHover) {
  const auto contents = [&](const std::string& result) {
    return rpc::to_text(shape_hover(parse(result), path, places).at("contents"));
  };
  EXPECT_EQ(contents(R"({"contents":{"kind":"markdown","value":"a"}})"), R"("a")");
  EXPECT_EQ(contents(R"({"contents":"a"})"), R"("a")");
  EXPECT_EQ(contents(R"({"contents":{"language":"c","value":"int a"}})"), R"("```c\nint a\n```")");
  EXPECT_EQ(contents(R"({"contents":["a",{"language":"c","value":"b"},""]})"), R"("a\n\n```c\nb\n```")");
  for (const char* nothing : {"null", R"({"contents":[]})", R"({"contents":""})", "5", "[]", R"({"contents":7})"}) {
    EXPECT_EQ(contents(nothing), "null") << nothing;
  }
  EXPECT_EQ(shape_hover(parse(R"({"contents":"a","range":)" + range() + "}"), path, places).at("column"), 4);
}

TEST_F(ShapesTest, TakesEveryFormOfALocation) {
  const std::string location = R"({"uri":")" + uri_of(path) + R"(","range":)" + range() + "}";
  const std::string link = R"({"targetUri":")" + uri_of(path) + R"(","targetSelectionRange":)" + range() + "}";
  for (const std::string& result : {location, "[" + location + "]", "[" + link + "]"}) {
    const value place = shape_places(parse(result), places).at("places").at(0);
    EXPECT_EQ(rpc::to_text(place),
              R"({"file":")" + path + R"(","line":2,"column":4,"endLine":2,"endColumn":7,"text":"ää one"})");
  }
  for (const char* nothing : {"null", "[]", "5"}) {
    EXPECT_TRUE(shape_places(parse(nothing), places).at("places").as_array().empty()) << nothing;
  }
}

TEST_F(ShapesTest, NamesPlacesThatAreInNoFile) {
  const value place = shape_places(parse(R"([{"uri":"jdt://x","range":{"start":{"line":4,"character":2}}}])"), places)
                          .at("places")
                          .at(0);
  EXPECT_EQ(place.at("uri"), "jdt://x");
  EXPECT_EQ(place.at("line"), 5);
}

TEST_F(ShapesTest, GivesAtMostSoManyPlaces) {
  std::string result = "[";
  for (std::size_t i = 0; i < most_places + 5; ++i) {
    result += (i == 0 ? "" : ",") + (R"({"uri":")" + uri_of(path) + R"(","range":)" + range() + "}");
  }
  const boost::json::object shaped = shape_places(parse(result + "]"), places);
  EXPECT_EQ(shaped.at("places").as_array().size(), most_places);
  EXPECT_EQ(shaped.at("more"), 5);
}

TEST_F(ShapesTest, SortsCompletionsAsTheServerWants) {
  const boost::json::object shaped = shape_completion(parse(
      R"({"isIncomplete":true,"items":[{"label":"b","sortText":"2"},{"label":"a","sortText":"3","kind":3,"detail":"int"},{"label":"c","sortText":"1","insertText":"c;"}]})"));
  EXPECT_EQ(
      rpc::to_text(shaped),
      R"({"items":[{"label":"c","kind":"text","insert":"c;"},{"label":"b","kind":"text"},{"label":"a","kind":"function","detail":"int"}],"incomplete":true})");
  EXPECT_EQ(shape_completion(parse("null")).at("incomplete"), false);
  EXPECT_EQ(shape_completion(parse(R"([{"label":"x"}])")).at("items").as_array().size(), 1U);
}

TEST_F(ShapesTest, TakesBothFormsOfSymbols) {
  const boost::json::object tree =
      shape_symbols(parse(R"([{"name":"A","kind":5,"selectionRange":)" + range() +
                          R"(,"children":[{"name":"b","kind":6,"selectionRange":)" + range() + "}]}]"),
                    path, places);
  EXPECT_EQ(tree.at("symbols").at(0).at("kind"), "class");
  EXPECT_EQ(tree.at("symbols").at(0).at("children").at(0).at("name"), "b");
  const boost::json::object flat =
      shape_symbols(parse(R"([{"name":"A","kind":99,"containerName":"ns","location":{"uri":")" + uri_of(path) +
                          R"(","range":)" + range() + "}}]"),
                    path, places);
  EXPECT_EQ(flat.at("symbols").at(0).at("kind"), "symbol");
  EXPECT_EQ(flat.at("symbols").at(0).at("container"), "ns");
  EXPECT_EQ(flat.at("symbols").at(0).at("line"), 2);
}

TEST_F(ShapesTest, ShowsDiagnostics) {
  const boost::json::array shaped =
      shape_diagnostics(parse(R"([{"range":)" + range() +
                              R"(,"severity":2,"message":"m","source":"s","code":"c"},{"message":"x","code":{}}])")
                            .as_array(),
                        path, places);
  EXPECT_EQ(shaped.at(0).at("severity"), "warning");
  EXPECT_EQ(shaped.at(0).at("code"), "c");
  EXPECT_EQ(shaped.at(0).at("endColumn"), 7);
  EXPECT_EQ(shaped.at(1).at("severity"), "error");
  EXPECT_FALSE(shaped.at(1).as_object().contains("code"));
}

TEST_F(ShapesTest, ReadsOnlySoMuchForOneAnswer) {
  std::string result;
  constexpr std::size_t size = 30U << 20U;
  for (int i = 0; i < 6; ++i) {
    const std::string large = folder.file(std::to_string(i));
    std::ofstream(large).put('x');
    std::filesystem::resize_file(large, size);
    result += (result.empty() ? "[" : ",") + (R"({"uri":")" + uri_of(large)) + R"(","range":)" + range() + "}";
  }
  const value shaped = shape_places(parse(result + "]"), places).at("places");
  EXPECT_TRUE(shaped.at(0).as_object().contains("text"));
  EXPECT_FALSE(shaped.at(5).as_object().contains("text"));
  EXPECT_EQ(shaped.at(5).at("line"), 2);
}

}  // namespace
}  // namespace duet::bridge
