#include "duet/rpc/message.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/rpc/json_scan.h"

namespace duet::rpc {
namespace {

using Kind = Message::Kind;

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

std::string text_of(const EncodedMessage& pieces) {
  std::string out;
  pieces.append_to(out);
  EXPECT_EQ(out.size(), pieces.size());
  return out;
}

// The answer to a message that breaks a rule.
std::string refusal(std::string_view text, Batches batches = Batches::refused) {
  const Message message = decode(text, batches);
  EXPECT_EQ(message.kind, Kind::invalid) << text.substr(0, 200);
  if (!message.refusal) return "none";
  return text_of(encode_error(message.id, encode(*message.refusal)));
}

std::string refused(std::string_view id, std::string_view reason, std::string_view detail = {}) {
  std::string out = R"({"jsonrpc":"2.0","id":)";
  out.append(id).append(R"(,"error":{"code":-32600,"message":"Invalid Request","data":{"reason":")").append(reason);
  if (!detail.empty()) out.append(R"(","detail":")").append(detail);
  return out + "\"}}}";
}

const std::string parse_error_answer =
    R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"reason":"invalid-json"}}})";

TEST(Message, ARequestIsTakenApartByteForByte) {
  const Message message =
      decode(R"( {"jsonrpc":"2.0", "id" : 1.0e1 ,"method":"do/it","params": [ 1,{"a":2} ] } )", Batches::refused);
  EXPECT_EQ(message.kind, Kind::request);
  EXPECT_TRUE(message.is_json);
  EXPECT_EQ(message.id, "1.0e1");
  EXPECT_EQ(message.method, "do/it");
  EXPECT_EQ(message.params, R"([ 1,{"a":2} ])");
  EXPECT_FALSE(message.refusal);
}

TEST(Message, WithoutAnIdItIsANotification) {
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","method":"m"})", Batches::refused).kind, Kind::notification);
}

TEST(Message, WithANullIdItIsARequestAnsweredWithNull) {
  const Message message = decode(R"({"jsonrpc":"2.0","id":null,"method":"m"})", Batches::refused);
  EXPECT_EQ(message.kind, Kind::request);
  EXPECT_EQ(message.id, "null");
}

TEST(Message, NullParamsAreNoParams) {
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","id":1,"method":"m","params":null})", Batches::refused).params, "");
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","id":1,"method":"m"})", Batches::refused).params, "");
}

TEST(Message, TheMethodHasItsEscapesResolvedAndSurvivesAMove) {
  Message message = decode(R"({"jsonrpc":"2.0","id":1,"method":"\u0061\/b\n\ud800"})", Batches::refused);
  EXPECT_EQ(message.method, "a/b\n\xEF\xBF\xBD");
  const Message moved = std::move(message);
  EXPECT_EQ(moved.method, "a/b\n\xEF\xBF\xBD");
}

TEST(Message, TheVersionMayBeSpeltWithEscapes) {
  for (const char* version : {R"("2.0")", R"("\u0032.0")", R"("2\u002e0")", R"("\u0032\u002E\u0030")"}) {
    const std::string text = std::string(R"({"id":1,"method":"m","jsonrpc":)") + version + "}";
    EXPECT_EQ(decode(text, Batches::refused).kind, Kind::request) << text;
  }
  for (const char* version :
       {R"("2.0\u0000")", R"("\\u0032.0")", R"("\u0032\u002E\u0031")", R"("2.00")", "2.0", R"(["2.0"])"}) {
    const std::string text = std::string(R"({"id":1,"method":"m","jsonrpc":)") + version + "}";
    EXPECT_EQ(refusal(text), refused("1", "malformed-envelope", R"(jsonrpc must be \"2.0\")")) << text;
  }
}

TEST(Message, MemberNamesMayBeSpeltWithEscapes) {
  const Message message =
      decode(R"({"\u006asonrpc":"2.0","\u0069\u0064":7,"m\u0065thod":"m","para\u006ds":{}})", Batches::refused);
  EXPECT_EQ(message.kind, Kind::request);
  EXPECT_EQ(message.id, "7");
  EXPECT_EQ(message.params, "{}");
}

TEST(Message, UnknownMembersAreIgnoredDoubledOrNot) {
  EXPECT_EQ(decode(R"({"x":1,"jsonrpc":"2.0","x":{"id":2},"id":1,"method":"m","":0,"":0})", Batches::refused).id, "1");
}

// The rules in their order. Each text breaks its rule and, where it can, every later one as well.

TEST(MessageRules, BadJsonComesBeforeEverything) {
  for (const char* text :
       {"", "[", R"([{"id":{}}x])", R"({"id":{},"id":2)", R"({"jsonrpc":"2.0","id":1,"method":"m"}x)",
        R"({"result":1}})", "{\"id\":\"\xFF\"}", "\xEF\xBB\xBF{}"}) {
    const Message message = decode(text, Batches::allowed);
    EXPECT_FALSE(message.is_json) << text;
    EXPECT_EQ(refusal(text, Batches::allowed), parse_error_answer) << text;
  }
}

TEST(MessageRules, AnArrayOnStdioIsRefusedWhateverIsInIt) {
  for (const std::string& text :
       {std::string("[]"), std::string(R"( [{"jsonrpc":"2.0","id":1,"method":"m"}] )"), nested(600)}) {
    EXPECT_EQ(refusal(text),
              R"({"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batch requests not supported",)"
              R"("data":{"reason":"batch-not-supported"}}})");
  }
}

TEST(MessageRules, AnArrayOnTheSocketIsABatch) {
  const std::string text = R"([{"jsonrpc":"2.0","id":1,"method":"m"},2])";
  const Message message = decode(text, Batches::allowed);
  EXPECT_EQ(message.kind, Kind::batch);
  EXPECT_EQ(message.batch, text);
  EXPECT_TRUE(message.is_json);
}

TEST(MessageRules, AnEmptyBatchIsOneInvalidRequest) {
  EXPECT_EQ(refusal(" [ ] ", Batches::allowed), refused("null", "malformed-envelope", "empty batch"));
}

TEST(MessageRules, ABatchMayHaveAThousandMembersAndNoMore) {
  std::string text = "[1";
  for (int i = 1; i < 1000; ++i) text += ",1";
  EXPECT_EQ(decode(text + "]", Batches::allowed).kind, Kind::batch);
  EXPECT_EQ(refusal(text + ",1]", Batches::allowed), refused("null", "batch-too-large"));
}

TEST(MessageRules, ABatchInsideABatchIsNoMessage) {
  EXPECT_EQ(refusal("[]", Batches::inside_another), refused("null", "malformed-envelope", "not an object"));
  EXPECT_EQ(refusal(R"([{"jsonrpc":"2.0","id":1,"method":"m"}])", Batches::inside_another),
            refused("null", "malformed-envelope", "not an object"));
}

TEST(MessageRules, WhatIsNotAnObjectIsMalformed) {
  for (const char* text : {"1", "null", "true", R"("{}")", "-1e400"}) {
    EXPECT_EQ(refusal(text), refused("null", "malformed-envelope", "not an object")) << text;
  }
}

TEST(MessageRules, AResponseIsRecognisedBeforeItsIdOrAnythingElseIsLookedAt) {
  for (const std::string& text :
       {std::string(R"({"result":1})"), std::string(R"({"error":{}})"), std::string(R"({"id":{},"result":null})"),
        std::string(R"({"jsonrpc":"1.0","jsonrpc":2,"id":1,"id":[],"params":7,"\u0065rror":0})"),
        R"({"id":true,"result":)" + nested(600) + "}"}) {
    const Message message = decode(text, Batches::refused);
    EXPECT_EQ(message.kind, Kind::response) << text.substr(0, 100);
    EXPECT_FALSE(message.refusal);
  }
}

TEST(MessageRules, AResponseKeepsItsIdResultAndErrorAsTheyStand) {
  const Message answered = decode(R"({"jsonrpc":"2.0","id":"\u0041","result":{ "a":1 }})", Batches::refused);
  EXPECT_EQ(answered.id, R"("\u0041")");
  EXPECT_EQ(answered.result, R"({ "a":1 })");
  EXPECT_EQ(answered.error, "");
  const Message failed = decode(R"({"error":{"code":1}})", Batches::refused);
  EXPECT_EQ(failed.id, "null");
  EXPECT_EQ(failed.error, R"({"code":1})");
}

TEST(MessageRules, AnIdIsKnownOnlyIfItIsTheMessagesOwn) {
  for (const char* text : {R"({"jsonrpc":"2.0","id":null,"method":"m"})", R"({"jsonrpc":"2.0","id":1,"method":7})",
                           R"({"id":1,"result":1})", R"({"id":null,"error":{}})"}) {
    EXPECT_TRUE(decode(text, Batches::refused).id_is_known) << text;
  }
  for (const char* text :
       {R"({"jsonrpc":"2.0","method":"m"})", R"({"id":1,"id":1,"method":"m"})", R"({"id":[],"method":"m"})",
        R"({"result":1})", R"({"id":{},"result":1})", "7", "[]", "nope"}) {
    const Message message = decode(text, Batches::refused);
    EXPECT_FALSE(message.id_is_known) << text;
    EXPECT_EQ(message.id, "null") << text;
  }
}

TEST(MessageRules, WithAMethodOfAnyKindItIsNoResponse) {
  EXPECT_EQ(decode(R"({"jsonrpc":"2.0","id":1,"method":"m","result":1})", Batches::refused).kind, Kind::request);
  EXPECT_EQ(refusal(R"({"jsonrpc":"2.0","id":1,"method":null,"result":1})"),
            refused("1", "malformed-envelope", "method must be a string"));
}

TEST(MessageRules, AnIdThatIsObjectArrayOrBooleanComesBeforeDoubledMembersAndAllLaterRules) {
  for (const char* id : {"{}", "[1]", "true", "false"}) {
    const std::string later = R"(,"jsonrpc":1,"jsonrpc":2,"method":3,"params":4,"x":)" + nested(600) + "}";
    EXPECT_EQ(refusal(std::string(R"({"id":)") + id + later), refused("null", "invalid-id-type")) << id;
    EXPECT_EQ(refusal(std::string(R"({"id":1,"id":)") + id + later), refused("null", "invalid-id-type")) << id;
  }
}

TEST(MessageRules, ADoubledMemberComesBeforeTheirContents) {
  const std::string deep = R"(,"x":)" + nested(600) + "}";
  for (const char* doubled :
       {R"("jsonrpc":1,"jsonrpc":1)", R"("method":1,"m\u0065thod":1)", R"("params":1,"params":1)"}) {
    EXPECT_EQ(refusal(std::string(R"({"id":"i",)") + doubled + deep),
              refused(R"("i")", "malformed-envelope", "duplicate member"));
    EXPECT_EQ(refusal(std::string("{") + doubled + deep), refused("null", "malformed-envelope", "duplicate member"));
  }
}

TEST(MessageRules, ADoubledIdIsAnsweredWithNull) {
  EXPECT_EQ(refusal(R"({"jsonrpc":"2.0","id":1,"method":"m","id":1})"),
            refused("null", "malformed-envelope", "duplicate member"));
  EXPECT_EQ(refusal(R"({"method":1,"method":1,"id":1,"\u0069d":1})"),
            refused("null", "malformed-envelope", "duplicate member"));
}

TEST(MessageRules, JsonrpcMethodAndParamsAreCheckedWithTheIdEchoed) {
  EXPECT_EQ(refusal(R"({"id":1})"), refused("1", "malformed-envelope", "jsonrpc is missing"));
  EXPECT_EQ(refusal(R"({"id":1,"jsonrpc":"2.0"})"), refused("1", "malformed-envelope", "method is missing"));
  EXPECT_EQ(refusal(R"({"id":1,"jsonrpc":"2.0","method":{}})"),
            refused("1", "malformed-envelope", "method must be a string"));
  for (const char* params : {"1", "true", "false", R"("[]")"}) {
    EXPECT_EQ(refusal(std::string(R"({"params":)") + params + R"(,"jsonrpc":"2.0","method":"m","id":1.50})"),
              refused("1.50", "malformed-envelope", "params must be an object or an array"));
  }
}

TEST(MessageRules, ABrokenNotificationIsAnsweredWithNull) {
  EXPECT_EQ(refusal(R"({"jsonrpc":"2.0","method":1})"),
            refused("null", "malformed-envelope", "method must be a string"));
  EXPECT_EQ(refusal("{}"), refused("null", "malformed-envelope", "jsonrpc is missing"));
}

TEST(MessageRules, AMalformedEnvelopeComesBeforeDepth) {
  EXPECT_EQ(refusal(R"({"jsonrpc":"2.0","id":1,"params":)" + nested(600) + "}"),
            refused("1", "malformed-envelope", "method is missing"));
}

TEST(MessageRules, Level512IsTheLastWhereverItIs) {
  const std::string head = R"({"jsonrpc":"2.0","method":"m")";
  for (const auto& [before, after] : {std::pair<std::string, std::string>(R"(,"id":"i","params":)", "}"),
                                      {R"(,"id":"i","x":)", "}"},
                                      {R"(,"params":)", R"(,"id":"i"})"},
                                      {R"(,"x":)", R"(,"id":"i"})"}}) {
    const std::string fits = head + before + nested(511) + after;
    const std::string deep = head + before + nested(512) + after;
    EXPECT_EQ(decode(fits, Batches::refused).kind, Kind::request) << before;
    EXPECT_EQ(refusal(deep), refused(R"("i")", "too-deep")) << before;
  }
  EXPECT_EQ(refusal(head + R"(,"params":)" + nested(512) + "}"), refused("null", "too-deep"));
}

TEST(MessageRules, ATextIsValidatedToItsEndAtAnyDepth) {
  constexpr std::size_t levels = 5'000'000;
  const std::string head = R"({"jsonrpc":"2.0","method":"m","params":)";
  const std::string deep = nested(levels);
  EXPECT_EQ(refusal(head + deep + R"(,"id":12})"), refused("12", "too-deep"));
  EXPECT_EQ(refusal(head + deep + R"(,"id":12)"), parse_error_answer);
  EXPECT_EQ(refusal(head + deep.substr(1) + R"(,"id":12})"), parse_error_answer);
  EXPECT_EQ(refusal(head + std::string(levels, '[')), parse_error_answer);
}

TEST(MessageRules, ABatchsOwnBracketsAreNoLevel) {
  const std::string member = R"({"jsonrpc":"2.0","id":1,"method":"m","params":)" + nested(511) + "}";
  const std::string text = "[" + member + "]";
  const Message batch = decode(text, Batches::allowed);
  ASSERT_EQ(batch.kind, Kind::batch);
  for_each_element(batch.batch, [](std::string_view one) {
    EXPECT_EQ(decode(one, Batches::inside_another).kind, Kind::request);
    return true;
  });
}

TEST(MessageText, ResultsHaveExactlyThreeMembers) {
  EXPECT_EQ(text_of(encode_result("1.0", R"({"a":1})")), R"({"jsonrpc":"2.0","id":1.0,"result":{"a":1}})");
}

TEST(MessageText, IsTheSameForPartsOfEveryLength) {
  for (std::size_t id_size = 1; id_size < 40; ++id_size) {
    for (std::size_t size = 1; size < 40; ++size) {
      const std::string id = std::string("1234567890123456789012345678901234567890").substr(0, id_size);
      const std::string value = std::string("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN").substr(0, size);
      ASSERT_EQ(text_of(encode_result(id, value)), "{\"jsonrpc\":\"2.0\",\"id\":" + id + ",\"result\":" + value + "}");
      ASSERT_EQ(text_of(encode_request(id, value, value)),
                "{\"jsonrpc\":\"2.0\",\"id\":" + id + ",\"method\":" + value + ",\"params\":" + value + "}");
    }
  }
}

TEST(MessageText, IsCopiedToItsPlaceAndNotAByteFurther) {
  const EncodedMessage pieces = encode_error("17", "{}");
  std::string out(pieces.size() + 1, '#');
  pieces.copy_to(out.data());
  EXPECT_EQ(out, R"({"jsonrpc":"2.0","id":17,"error":{}}#)");
  EXPECT_EQ(pieces.payload_size(), 2U);
}

TEST(MessageText, ABatchIsItsAnswersInBrackets) { EXPECT_EQ(text_of(encode_batch("{},{}")), "[{},{}]"); }

TEST(MessageText, ErrorsHaveExactlyThreeMembersAndDataOnlyWhereThereIsSome) {
  EXPECT_EQ(text_of(encode_error("null", encode(internal_error()))),
            R"({"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}})");
  EXPECT_EQ(encode(Error(7, "a \"b\"\n", std::vector{1})), R"({"code":7,"message":"a \"b\"\n","data":[1]})");
}

TEST(MessageText, AnErrorThatIsPassedOnKeepsItsSpelling) {
  const std::string odd = R"({"data":{"n": 1.50},"message":"\u0041","code":-5})";
  const Error error = decode_error(odd);
  EXPECT_EQ(error.code(), -5);
  EXPECT_EQ(error.message(), "A");
  EXPECT_EQ(error.data(), R"({"n": 1.50})");
  EXPECT_EQ(encode(error), odd);
}

TEST(MessageText, AnErrorIsReadWhateverItIs) {
  EXPECT_EQ(encode(decode_error("5")), R"({"code":-32603,"message":""})");
  EXPECT_EQ(encode(decode_error(R"({"code":1.5,"message":"a"})")), R"({"code":-32603,"message":"a"})");
  EXPECT_EQ(encode(decode_error(R"({"code":99999999999,"message":"a"})")), R"({"code":-32603,"message":"a"})");
  EXPECT_EQ(encode(decode_error(R"({"code":1,"message":"a","stack":[]})")), R"({"code":1,"message":"a"})");
  EXPECT_EQ(encode(decode_error(R"({"code":1,"code":2,"message":"a"})")), R"({"code":1,"message":"a"})");
}

TEST(MessageText, RequestsAndNotificationsHaveParamsOnlyWhereThereAreSome) {
  EXPECT_EQ(text_of(encode_request("7", R"("m")", "[1]")), R"({"jsonrpc":"2.0","id":7,"method":"m","params":[1]})");
  EXPECT_EQ(text_of(encode_request("7", R"("m")", "")), R"({"jsonrpc":"2.0","id":7,"method":"m"})");
  EXPECT_EQ(text_of(encode_notification(R"("m")", "{}")), R"({"jsonrpc":"2.0","method":"m","params":{}})");
  EXPECT_EQ(text_of(encode_notification(R"("m")", "")), R"({"jsonrpc":"2.0","method":"m"})");
}

}  // namespace
}  // namespace duet::rpc
