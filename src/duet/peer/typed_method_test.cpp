#include "duet/peer/typed_method.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Submit {
  std::string prompt;
  std::optional<std::string> agent;
  int priority = 0;
};
BOOST_DESCRIBE_STRUCT(Submit, (), (prompt, agent, priority))

struct Submitted {
  std::string id;
  std::optional<Colour> colour = {};
};
BOOST_DESCRIBE_STRUCT(Submitted, (), (id, colour))

struct Undescribed {};

double minus(double a, double b) { return a - b; }

/// A conversation that is opened by the first question.
struct Setting : TestConnection {
  std::string ask(std::string_view method, std::string_view params = {}) {
    if (!connection) open();
    const Strings answers = say({request("1", method, params)});
    return answers.size() == 1 ? answers.front() : std::to_string(answers.size()) + " answers";
  }
  std::string refusal(std::string_view method, std::string_view params) {
    const std::string answer = ask(method, params);
    const std::size_t data = answer.find(R"("data":)");
    return data == std::string::npos ? answer : answer.substr(data + 7, answer.size() - data - 9);
  }
};

TEST(TypedMethod, TakesValuesByNameAndByPosition) {
  Setting s;
  s.methods.add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  s.methods.add("minus", "A function", {"a", "b"}, minus);
  EXPECT_EQ(s.ask("add", "[2,3]"), result("1", "5"));
  EXPECT_EQ(s.ask("add", R"({"b":3,"a":0.5})"), result("1", "3.5"));
  EXPECT_EQ(s.ask("minus", "[2,3]"), result("1", "-1"));
  EXPECT_EQ(s.refusal("add", "[2]"), R"({"param":"b","expected":"number","received":"missing"})");
  EXPECT_EQ(s.refusal("add", R"(["2",3])"), R"({"param":"a","expected":"number","received":"string"})");
}

TEST(TypedMethod, TakesAStruct) {
  Setting s;
  s.methods.add("submit", "", [](Submit task) { return task.prompt + " " + std::to_string(task.priority); });
  s.methods.add("look", "", [](const Submit& task) { return task.agent; });
  EXPECT_EQ(s.ask("submit", R"({"prompt":"x"})"), result("1", R"("x 0")"));
  EXPECT_EQ(s.ask("submit", R"(["x",null,7])"), result("1", R"("x 7")"));
  EXPECT_EQ(s.ask("look", R"(["x","me"])"), result("1", R"("me")"));
  EXPECT_EQ(s.ask("look", R"(["x"])"), result("1", "null"));
  EXPECT_EQ(s.refusal("submit", "{}"), R"({"param":"prompt","expected":"string","received":"missing"})");
}

TEST(TypedMethod, AStructCanAlsoBeOneOfSeveralValues) {
  Setting s;
  s.methods.add("both", "", {"task", "count"}, [](const Submit& task, int count) { return task.priority + count; });
  EXPECT_EQ(s.ask("both", R"([{"prompt":"x","priority":2},3])"), result("1", "5"));
  EXPECT_EQ(s.refusal("both", R"([{"prompt":5},3])"),
            R"({"param":"task","expected":"object {prompt: string, agent?: string, priority?: integer}",)"
            R"("received":"object"})");
}

TEST(TypedMethod, TakesAllParamsAsTheyCame) {
  Setting s;
  s.methods.add("raw", "", [](const rpc::Json& params) { return params; });
  s.methods.add("count", "", [](rpc::Json params, const Request& asked) {
    return params.empty() ? -1 : static_cast<int>(params.text().size() + asked.id.size());
  });
  EXPECT_EQ(s.ask("raw", R"({ "a" : 1 })"), result("1", R"({ "a" : 1 })"));
  EXPECT_EQ(s.ask("raw"), result("1", "null"));
  EXPECT_EQ(s.ask("count", "[ ]"), result("1", "4"));
  EXPECT_EQ(s.ask("count"), result("1", "-1"));
}

TEST(TypedMethod, RawParamsThatAreKeptOutliveTheRequest) {
  Setting s;
  std::vector<rpc::Json> kept;
  s.methods.add("by value", "", [&](rpc::Json params) { kept.push_back(std::move(params)); });
  s.methods.add("by reference", "", [&](const rpc::Json& params) { kept.push_back(params); });
  s.ask("by value", "[1]");
  s.ask("by reference", "[2]");
  s.ask("echo", "[3]");
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].text(), "[1]");
  EXPECT_EQ(kept[1].text(), "[2]");
}

TEST(TypedMethod, KnowsWhoAsks) {
  Setting s;
  s.methods.add("who", "", [](const Request& asked) { return std::string(asked.method) + std::string(asked.id); });
  s.methods.add("which", "", {"n"},
                [](int n, const Request& asked) { return std::to_string(n) + std::string(asked.id); });
  EXPECT_EQ(s.ask("who"), result("1", R"("who1")"));
  EXPECT_EQ(s.ask("which", "[5]"), result("1", R"("51")"));
}

TEST(TypedMethod, AnswersWithWhateverHasJson) {
  Setting s;
  s.methods.add("nothing", [] {});
  s.methods.add("struct", [] { return Submitted{"x", Colour::green}; });
  s.methods.add("list", [] { return std::vector{1, 2}; });
  s.methods.add("map", [] { return std::map<std::string, bool>{{"a", true}}; });
  s.methods.add("optional", [] { return std::optional<int>(); });
  s.methods.add("tree", [] { return boost::json::value{{"a", 1}}; });
  s.methods.add("json", [] { return rpc::Json::view("[ ]"); });
  s.methods.add("no json", [] { return rpc::Json(); });
  s.methods.add("spelt", [] { return rpc::JsonOf<Submitted>::view(R"({"id":"y"})"); });
  EXPECT_EQ(s.ask("nothing"), result("1", "null"));
  EXPECT_EQ(s.ask("struct"), result("1", R"({"id":"x","colour":"green"})"));
  EXPECT_EQ(s.ask("list"), result("1", "[1,2]"));
  EXPECT_EQ(s.ask("map"), result("1", R"({"a":true})"));
  EXPECT_EQ(s.ask("optional"), result("1", "null"));
  EXPECT_EQ(s.ask("tree"), result("1", R"({"a":1})"));
  EXPECT_EQ(s.ask("json"), result("1", "[ ]"));
  EXPECT_EQ(s.ask("no json"), result("1", "null"));
  EXPECT_EQ(s.ask("spelt"), result("1", R"({"id":"y"})"));
}

TEST(TypedMethod, MayAnswerWithAPartOfItsParams) {
  Setting s;
  s.methods.add("all", "", {"text"}, [](const std::string& text) -> const std::string& { return text; });
  s.methods.add("start", "", {"text"}, [](const std::string& text) { return std::string_view(text).substr(0, 40); });
  const std::string forty(40, 'x');
  EXPECT_EQ(s.ask("all", "[\"" + forty + "\"]"), result("1", '"' + forty + '"'));
  EXPECT_EQ(s.ask("start", "[\"" + forty + "yy\"]"), result("1", '"' + forty + '"'));
}

TEST(TypedMethod, AnswersLater) {
  Setting s;
  std::vector<Reply<Submitted>> kept;
  s.methods.add("submit", "",
                [&](const Submit&, const Request&, Reply<Submitted> reply) { kept.push_back(std::move(reply)); });
  s.methods.add("void", "", [](Reply<void> reply) { reply.ok(); });
  s.methods.add("spelt", "", [](Reply<Submitted> reply) { reply.ok(rpc::JsonOf<Submitted>::view(R"({"id":"y"})")); });
  s.methods.add("any", "", [](Reply<> reply) { reply.ok({{"a", 1}}); });
  s.methods.add("none", "", [](Reply<> reply) { reply.ok(rpc::Json()); });
  EXPECT_EQ(s.ask("void"), result("1", "null"));
  EXPECT_EQ(s.ask("spelt"), result("1", R"({"id":"y"})"));
  EXPECT_EQ(s.ask("any"), result("1", R"({"a":1})"));
  EXPECT_EQ(s.ask("none"), result("1", "null"));
  EXPECT_EQ(s.ask("submit", R"(["x"])"), "0 answers");
  kept.front().ok({"task-1"});
  s.turn();
  EXPECT_EQ(s.heard(), Strings{result("1", R"({"id":"task-1"})")});
}

TEST(TypedMethod, WhoseParamsAreWrongIsRefusedBeforeItsReplyExists) {
  Setting s;
  s.methods.add("submit", "", [&](const Submit&, const Reply<>&) { ADD_FAILURE(); });
  EXPECT_EQ(s.refusal("submit", "[5]"), R"({"param":"prompt","expected":"string","received":"number"})");
  EXPECT_EQ(s.ask("echo", "[1]"), result("1", "[1]"));
}

TEST(TypedMethod, AHandlerMayKeepSomethingBetweenCalls) {
  Setting s;
  s.methods.add("next", [n = 0]() mutable { return ++n; });
  EXPECT_EQ(s.ask("next"), result("1", "1"));
  EXPECT_EQ(s.ask("next"), result("1", "2"));
}

TEST(TypedMethod, HandlersThatMakeNoSenseDoNotCompile) {
  using P = rpc::Json;
  static_assert(HandlerWithoutNames<decltype([] {})>);
  static_assert(HandlerWithoutNames<decltype([](const P&, const Request&, Reply<int>) {})>);
  static_assert(HandlerWithoutNames<std::function<int(const Submit&)>>);
  static_assert(HandlerWithNames<decltype([](int, std::optional<std::string>) noexcept {})>);

  static_assert(!HasSignature<decltype([](auto) {})>, "says too little");
  static_assert(!HasSignature<int>, "is no callable");
  static_assert(!HandlerShape<decltype([](const Request&, int) {})>, "the request comes after the params");
  static_assert(!HandlerShape<decltype([](Reply<int>, const Request&) {})>, "the reply comes last");
  static_assert(!HandlerShape<decltype([](Reply<int>, Reply<int>) {})>, "one reply is enough");
  static_assert(!HandlerShape<decltype([](Reply<int>) { return 1; })>, "a reply and a result");
  static_assert(!HandlerWithResult<decltype([] { return Undescribed(); })>, "a result without JSON");
  static_assert(!HandlerWithResult<decltype([](Reply<Undescribed>) {})>, "a late one without JSON");
  static_assert(!HandlerWithoutNames<decltype([](int) {})>, "a value without a name");
  static_assert(!HandlerWithoutNames<decltype([](Submit, Submit) {})>, "two structs");
  static_assert(!HandlerWithNames<decltype([](Undescribed) {})>, "a param without JSON");
  static_assert(!HandlerWithNames<decltype([](std::string_view) {})>, "a text that would dangle");
}

}  // namespace
}  // namespace duet::peer
