#include <string>

#include <gtest/gtest.h>

#include "duet/peer/connection_fixture_test.h"

namespace duet::peer {
namespace {

/// Code, message and id of each answer; the specification's examples have no `data`.
std::string without_data(std::string text) {
  for (std::size_t at = text.find(R"(,"data":)"); at != std::string::npos; at = text.find(R"(,"data":)", at)) {
    text.erase(at, text.find('}', at) + 1 - at);
  }
  return text;
}

class SpecificationExamples : public testing::Test {
 protected:
  SpecificationExamples() {
    c_.methods.add("subtract", "", {"minuend", "subtrahend"},
                   [](std::int64_t minuend, std::int64_t subtrahend) { return minuend - subtrahend; });
    c_.methods.add("sum", [](const rpc::Json& numbers) {
      std::int64_t sum = 0;
      for (const std::int64_t number : numbers.as<std::vector<std::int64_t>>()) sum += number;
      return sum;
    });
    for (const char* name : {"update", "notify_hello", "notify_sum"}) {
      c_.methods.add(name, [] {});
    }
    c_.methods.add("get_data", [](const Request&) { return rpc::Json::view(R"(["hello",5])"); });
    c_.open();
  }

  Strings answers_to(const std::string& text) {
    Strings answers = c_.say({text});
    for (std::string& answer : answers) answer = without_data(answer);
    return answers;
  }

  TestConnection c_;
};

TEST_F(SpecificationExamples, PositionalParameters) {
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1})"),
            Strings{result("1", "19")});
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": "subtract", "params": [23, 42], "id": 2})"),
            Strings{result("2", "-19")});
}

TEST_F(SpecificationExamples, NamedParameters) {
  EXPECT_EQ(
      answers_to(R"({"jsonrpc": "2.0", "method": "subtract", "params": {"subtrahend": 23, "minuend": 42}, "id": 3})"),
      Strings{result("3", "19")});
  EXPECT_EQ(
      answers_to(R"({"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42, "subtrahend": 23}, "id": 4})"),
      Strings{result("4", "19")});
}

TEST_F(SpecificationExamples, Notifications) {
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]})"), Strings{});
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": "foobar"})"), Strings{});
}

TEST_F(SpecificationExamples, AMethodThatDoesNotExist) {
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": "foobar", "id": "1"})"),
            Strings{error(R"("1")", -32601, "Method not found")});
}

TEST_F(SpecificationExamples, InvalidJson) {
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz])"),
            Strings{error("null", -32700, "Parse error")});
}

TEST_F(SpecificationExamples, AnInvalidRequestObject) {
  EXPECT_EQ(answers_to(R"({"jsonrpc": "2.0", "method": 1, "params": "bar"})"),
            Strings{error("null", -32600, "Invalid Request")});
}

TEST_F(SpecificationExamples, ABatchOfInvalidJson) {
  EXPECT_EQ(answers_to(R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"}, )"
                       R"({"jsonrpc": "2.0", "method"])"),
            Strings{error("null", -32700, "Parse error")});
}

TEST_F(SpecificationExamples, AnEmptyArray) {
  EXPECT_EQ(answers_to("[]"), Strings{error("null", -32600, "Invalid Request")});
}

TEST_F(SpecificationExamples, InvalidBatches) {
  const std::string refusal = error("null", -32600, "Invalid Request");
  EXPECT_EQ(answers_to("[1]"), Strings{"[" + refusal + "]"});
  EXPECT_EQ(answers_to("[1,2,3]"), Strings{"[" + refusal + "," + refusal + "," + refusal + "]"});
}

TEST_F(SpecificationExamples, ABatchOfMany) {
  EXPECT_EQ(answers_to(R"([{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},)"
                       R"({"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},)"
                       R"({"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},)"
                       R"({"foo": "boo"},)"
                       R"({"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},)"
                       R"({"jsonrpc": "2.0", "method": "get_data", "id": "9"}])"),
            Strings{"[" + result(R"("1")", "7") + "," + result(R"("2")", "19") + "," +
                    error("null", -32600, "Invalid Request") + "," + error(R"("5")", -32601, "Method not found") + "," +
                    result(R"("9")", R"(["hello",5])") + "]"});
}

TEST_F(SpecificationExamples, ABatchOfNotifications) {
  EXPECT_EQ(answers_to(R"([{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},)"
                       R"({"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}])"),
            Strings{});
}

}  // namespace
}  // namespace duet::peer
