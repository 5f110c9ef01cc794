// The envelope rules against a second reading of them, on top of a second JSON reader. Ids byte for byte.
//
// An input that begins with an even byte is a message; with an odd one, each further byte chooses a piece of a message,
// so that objects with all the members there are rules about come up often.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "duet/rpc/message.h"
#include "require.h"
#include "slow_json.h"

namespace {

using duet::rpc::Batches;
using duet::rpc::Message;
using Kind = Message::Kind;

struct Outcome {
  Kind kind = Kind::invalid;
  std::string id = "null";
  std::string reason;
  std::string method;
  std::string params;
  std::string result;
  std::string error;
};

class Rules {
 public:
  Rules(std::string_view text, Batches batches) : json_(text), batches_(batches) {
    while (!text.empty() && std::string_view(" \t\r\n").find(text[0]) != std::string_view::npos) text.remove_prefix(1);
    first_ = text.empty() ? '\0' : text[0];
  }

  Outcome outcome() const {
    Outcome outcome = outcome_without_method();
    const bool is_asking = first_ == '{' && outcome.kind != Kind::response;
    if (is_asking && json_.valid && count("method") == 1 && first("method")[0] == '"') {
      outcome.method = text_of(first("method"));
    }
    return outcome;
  }

 private:
  Outcome outcome_without_method() const {
    if (!json_.valid) return refused("invalid-json");
    if (first_ == '[') return array();
    if (first_ != '{') return refused("malformed-envelope");
    if (count("method") == 0 && (count("result") > 0 || count("error") > 0)) return response();
    if (any_id_of_wrong_type()) return refused("invalid-id-type");
    const std::string id = count("id") == 1 ? std::string(first("id")) : "null";
    for (const char* name : {"jsonrpc", "id", "method", "params"}) {
      if (count(name) > 1) return refused("malformed-envelope", id);
    }
    if (count("jsonrpc") == 0 || text_of(first("jsonrpc")) != "2.0") return refused("malformed-envelope", id);
    if (count("method") == 0 || first("method")[0] != '"') return refused("malformed-envelope", id);
    const std::string params(first("params"));
    if (!params.empty() && params != "null" && params[0] != '{' && params[0] != '[')
      return refused("malformed-envelope", id);
    if (json_.depth > 512) return refused("too-deep", id);
    return {count("id") == 0 ? Kind::notification : Kind::request, id, "", "", params == "null" ? "" : params, "", ""};
  }

  static Outcome refused(std::string reason, std::string id = "null") {
    return {Kind::invalid, std::move(id), std::move(reason), "", "", "", ""};
  }

  Outcome array() const {
    if (batches_ == Batches::refused) return refused("batch-not-supported");
    if (batches_ == Batches::inside_another || json_.elements.empty()) return refused("malformed-envelope");
    if (json_.elements.size() > 1000) return refused("batch-too-large");
    return {Kind::batch, "null", "", "", "", "", ""};
  }

  Outcome response() const {
    const std::string id(count("id") == 0 || any_id_of_wrong_type() ? "null" : first("id"));
    return {Kind::response, id, "", "", "", std::string(first("result")), std::string(first("error"))};
  }

  std::size_t count(std::string_view name) const {
    return static_cast<std::size_t>(
        std::count_if(json_.members.begin(), json_.members.end(), [&](const auto& m) { return m.name == name; }));
  }

  std::string_view first(std::string_view name) const {
    const auto found =
        std::find_if(json_.members.begin(), json_.members.end(), [&](const auto& m) { return m.name == name; });
    return found == json_.members.end() ? std::string_view() : found->value;
  }

  bool any_id_of_wrong_type() const {
    return std::any_of(json_.members.begin(), json_.members.end(), [](const auto& m) {
      return m.name == "id" && std::string_view("{[tf").find(m.value[0]) != std::string_view::npos;
    });
  }

  static std::string text_of(std::string_view token) {
    return token[0] == '"' ? SlowJson::unescaped(token.substr(1, token.size() - 2)) : "not a string";
  }

  SlowJson json_;
  Batches batches_;
  char first_;
};

std::string built(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array<std::string_view, 24> names = {"jsonrpc",
                                                             "jsonrpc",
                                                             "jsonrpc",
                                                             "jsonrp\\u0063",
                                                             "id",
                                                             "id",
                                                             "\\u0069d",
                                                             "\\u0049d",
                                                             "method",
                                                             "method",
                                                             "\\u006Dethod",
                                                             "params",
                                                             "params",
                                                             "p\\u0061rams",
                                                             "result",
                                                             "error",
                                                             "\\u0065rror",
                                                             "x",
                                                             "",
                                                             "ID",
                                                             "id\\u0000",
                                                             "methods",
                                                             "\\u006a\\u0073\\u006f\\u006e\\u0072\\u0070\\u0063",
                                                             "\\ud800"};
  static constexpr std::array<std::string_view, 24> values = {"\"2.0\"",
                                                              "\"2.0\"",
                                                              "\"\\u0032.0\"",
                                                              "2.0",
                                                              "1",
                                                              "-0",
                                                              "1.50",
                                                              "1e400",
                                                              "\"m\"",
                                                              "\"\\u006d\\ud83d\\ude00\"",
                                                              "\"\\ud800\"",
                                                              "null",
                                                              "true",
                                                              "false",
                                                              "{}",
                                                              "[]",
                                                              "{\"id\":[]}",
                                                              "[1,{}]",
                                                              "\"\"",
                                                              "\"2.00\"",
                                                              "12345678901234567890123",
                                                              "[[[[]]]]",
                                                              "\"Content-Length: 5\"",
                                                              "\xC3"};
  constexpr std::size_t most_members = 20;
  std::string text = "{";
  for (std::size_t i = 0; i + 1 < std::min(size, 2 * most_members); i += 2) {
    if (data[i] == 255) {
      text += std::string(data[i + 1], ' ');
      continue;
    }
    if (text.size() > 1) text += ',';
    text.append("\"").append(names[data[i] % names.size()]).append("\":");
    // A few values are as deep as it takes.
    const std::size_t levels = data[i + 1] >= 250 ? 505U + data[i + 1] - 246U : 0;
    text += std::string(levels, '[') + std::string(values[data[i + 1] % values.size()]) + std::string(levels, ']');
  }
  return text + "}";
}

std::string reason_of(const Message& message) {
  if (!message.refusal) return "";
  const std::string& data = message.refusal->data();
  constexpr std::string_view before = "{\"reason\":\"";
  require(data.starts_with(before), "a refusal says its reason");
  return data.substr(before.size(), data.find('"', before.size()) - before.size());
}

void check(std::string_view text, Batches batches) {
  const Message message = duet::rpc::decode(text, batches);
  const Outcome expected = Rules(text, batches).outcome();
  require(message.kind == expected.kind, "the kind is right");
  require(message.is_json == (expected.reason != "invalid-json"), "it is known whether it is JSON");
  require(message.id == expected.id, "the id is right, byte for byte");
  require(message.id_is_known || message.id == "null", "an id that is not known is null");
  require(reason_of(message) == expected.reason, "the reason is right");
  require(message.method == expected.method, "the method is right");
  require(message.params == expected.params, "the params are right");
  require(message.result == expected.result, "the result is right");
  require(message.error == expected.error, "the error is right");
  if (message.kind == Kind::batch) require(message.batch == text, "a batch is the whole text");

  std::string answer;
  duet::rpc::encode_result(message.id, "null").append_to(answer);
  const Message read_back = duet::rpc::decode(answer, Batches::refused);
  require(read_back.kind == Kind::response && read_back.id == expected.id, "an answer carries the id");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text =
      data[0] % 2 == 1 ? built(data + 1, size - 1) : std::string(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const Batches batches : {Batches::refused, Batches::allowed, Batches::inside_another}) check(text, batches);
  return 0;
}
