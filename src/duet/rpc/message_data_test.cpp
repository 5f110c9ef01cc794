// The envelopes that stand as data in tests/json, and properties over random messages.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "duet/rpc/case_file_test.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/message.h"

namespace duet::rpc {
namespace {

std::string reason_in(const Error& error) {
  std::string reason;
  for_each_member(error.data(), [&](std::string_view name, std::string_view value) {
    if (name == "reason") reason = decode_string(value);
    return true;
  });
  return reason;
}

std::string outcome_of(const Message& message);

std::string outcome_of_batch(std::string_view batch) {
  std::string out = "batch ";
  for_each_element(batch, [&](std::string_view member) {
    if (out != "batch ") out += "; ";
    out += outcome_of(decode(member, Batches::inside_another));
    return true;
  });
  return out;
}

// What a message came to, in the words of the data.
std::string outcome_of(const Message& message) {
  const std::string id(message.id);
  switch (message.kind) {
    case Message::Kind::request:
      return "request " + id;
    case Message::Kind::notification:
      return "notification";
    case Message::Kind::response:
      return "response";
    case Message::Kind::batch:
      return outcome_of_batch(message.batch);
    case Message::Kind::invalid:
      return reason_in(*message.refusal) + ' ' + id;
  }
  return "";
}

TEST(MessageData, EveryEnvelopeComesToWhatTheDataSays) {
  const std::vector<EnvelopeCase> cases = envelope_cases();
  EXPECT_GT(cases.size(), 150U);
  for (const EnvelopeCase& one : cases) {
    const std::string expected = unescape_case(one.outcome);
    if (one.door != "socket") {
      EXPECT_EQ(outcome_of(decode(one.text, Batches::refused)), expected) << "line " << one.line;
    }
    if (one.door != "stdio") {
      EXPECT_EQ(outcome_of(decode(one.text, Batches::allowed)), expected) << "line " << one.line;
    }
  }
}

rc::Gen<std::string> digits(int at_least) {
  return rc::gen::suchThat(rc::gen::container<std::string>(rc::gen::inRange('0', static_cast<char>('9' + 1))),
                           [at_least](const std::string& text) { return static_cast<int>(text.size()) >= at_least; });
}

rc::Gen<std::string> json_number() {
  return rc::gen::exec([] {
    std::string text = *rc::gen::element<std::string>("", "-");
    const std::string whole = *digits(1);
    text += whole[0] == '0' ? "0" : whole;
    if (*rc::gen::arbitrary<bool>()) text += '.' + *digits(1);
    if (*rc::gen::arbitrary<bool>()) {
      text += *rc::gen::element<std::string>("e", "E") + *rc::gen::element<std::string>("", "+", "-") + *digits(1);
    }
    return text;
  });
}

rc::Gen<std::string> json_string() {
  return rc::gen::exec([] {
    const auto parts = *rc::gen::container<std::vector<std::string>>(
        rc::gen::oneOf(rc::gen::element<std::string>("a", "é", "€", "\xF0\x9F\x98\x80", "\\n", "\\\"", "\\\\", "\\/",
                                                     "\\u0041", "\\u00E9", "\\ud83d\\ude00", "\\ud800", "\\uDFFF",
                                                     "\\u0000", "Content-Length: 5", "{", "]", "\x7f"),
                       rc::gen::map(rc::gen::inRange(0, 0x5B), [](int offset) {
                         const char c = static_cast<char>(' ' + offset);
                         return c == '"' || c == '\\' ? std::string("x") : std::string(1, c);
                       })));
    std::string text = "\"";
    for (const std::string& part : parts) text += part;
    return text + '"';
  });
}

// A message with this id comes back with the same bytes, whatever stands around it.
void expect_echoed(const std::string& id) {
  const std::string space = *rc::gen::element<std::string>("", " ", "\t", "\r\n ", "  \n");
  std::string text =
      "{" + space + "\"id\"" + space + ":" + space + id + space + "," + R"("method":"m","jsonrpc":"2.0"})";
  if (*rc::gen::arbitrary<bool>()) text = R"({"jsonrpc":"2.0","method":"m","\u0069d":)" + space + id + space + "}";
  const Message message = decode(text, Batches::refused);
  RC_ASSERT(message.kind == Message::Kind::request);
  std::string answer;
  encode_result(message.id, "null").append_to(answer);
  RC_ASSERT(answer == R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":null})");
  const Message read_back = decode(answer, Batches::refused);
  RC_ASSERT(read_back.kind == Message::Kind::response);
  RC_ASSERT(read_back.id == id);
}

RC_GTEST_PROP(MessageIds, ANumberGoesBackByteForByte, ()) {
  for (int i = 0; i < 20; ++i) expect_echoed(*json_number());
}

RC_GTEST_PROP(MessageIds, AStringGoesBackByteForByte, ()) {
  for (int i = 0; i < 20; ++i) expect_echoed(*json_string());
}

TEST(MessageIds, AMegabyteOfStringGoesBackByteForByte) {
  std::string id = "\"";
  while (id.size() < 1'000'000) id += "\\u0041é\\ud800";
  id += '"';
  const std::string request = R"({"jsonrpc":"2.0","method":"m","id":)" + id + "}";
  EXPECT_EQ(decode(request, Batches::refused).id, id);
  const std::string broken = R"({"jsonrpc":"2.0","method":1,"id":)" + id + "}";
  EXPECT_EQ(decode(broken, Batches::refused).id, id);
}

}  // namespace
}  // namespace duet::rpc
