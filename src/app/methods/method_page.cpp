#include "app/methods/method_page.h"

#include <chrono>
#include <string_view>
#include <utility>

#include "app/methods/stdio_methods.h"
#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/peer/connection.h"
#include "duet/peer/methods.h"
#include "duet/rpc/json_text.h"
#include "duet/transport/loop.h"
#include "duet/transport/memory.h"

namespace duet::app {
namespace {

constexpr std::string_view introduction =
    R"(# The methods of `duet-rpc rpc`

Made by `duet-rpc print methods` from the table that dispatches; do not edit. How messages are framed, and what errors
look like, stands in [wire.md](wire.md). The methods of the project's daemon are others: [socket.md](socket.md#methods).

Params are taken by name or by position. Methods without params ignore what they get; others ignore what they do not
know.
)";

/// Both ends of a conversation in one process.
class Rehearsal {
 public:
  explicit Rehearsal(const peer::Methods& methods) : Rehearsal(methods, transport::memory_pair(loop_)) {}

  std::string answer(std::string_view method, std::string_view params) {
    std::string result;
    client_.call(method, rpc::Json::view(params), std::chrono::seconds(5),
                 [&](const peer::Outcome& outcome) { result = outcome.result; });
    while (result.empty()) loop_.turn();
    return result;
  }

 private:
  using Ends = std::pair<std::unique_ptr<transport::Channel>, std::unique_ptr<transport::Channel>>;

  Rehearsal(const peer::Methods& methods, Ends ends)
      : server_(loop_, std::move(ends.first), peer::Protocol::json_lines(), methods, log_),
        client_(loop_, std::move(ends.second), peer::Protocol::json_lines_client(), none_, log_) {
    server_.open();
    client_.open();
  }

  transport::Loop loop_;
  base::Log log_{nullptr};
  peer::Methods none_;
  peer::Connection server_;
  peer::Connection client_;
};

std::string sample(const rpc::Param& param) {
  if (!param.accepted.empty()) return rpc::quoted(param.accepted.front());
  switch (param.type) {
    case rpc::Type::text:
      return R"("text")";
    case rpc::Type::integer:
    case rpc::Type::number:
      return "1";
    case rpc::Type::boolean:
      return "true";
    case rpc::Type::array:
      return "[]";
    default:
      return "{}";
  }
}

std::string sample_params(const peer::Method& method) {
  std::string out;
  for (const rpc::Param& param : method.params) {
    if (!param.required) continue;
    out += (out.empty() ? "{" : ",") + rpc::quoted(param.name) + ":" + sample(param);
  }
  return out.empty() ? out : out + "}";
}

std::string param_line(const rpc::Param& param) {
  std::string out = "- `" + param.name + "`, " + std::string(rpc::name_of(param.type));
  if (!param.required) out += ", optional";
  if (!param.summary.empty()) out += ": " + param.summary;
  for (std::size_t i = 0; i < param.accepted.size(); ++i) {
    out += (i == 0 ? "; one of `" : ", `") + param.accepted[i] + "`";
  }
  return out + "\n";
}

std::string example(const peer::Method& method, Rehearsal& rehearsal) {
  const std::string params = sample_params(method);
  const std::string start = R"({"jsonrpc":"2.0","id":1,)";
  const std::string sent = params.empty() ? "" : R"(,"params":)" + params;
  return "```\n--> " + start + R"("method":)" + rpc::quoted(method.name) + sent + "}\n<-- " + start + R"("result":)" +
         rehearsal.answer(method.name, params) + "}\n```\n";
}

std::string section(const peer::Method& method, Rehearsal& rehearsal) {
  std::string out = "\n## " + method.name + "\n\n" + method.summary + ".\n\n";
  for (const rpc::Param& param : method.params) out += param_line(param);
  if (!method.params.empty()) out += "\n";
  return out + "Returns: " + std::string(rpc::name_of(method.returns)) + ".\n\n" + example(method, rehearsal);
}

}  // namespace

std::string method_page() {
  base::Log log(nullptr);
  peer::Methods methods;
  add_stdio_methods(methods, log, {.shut_down = [] {}, .watch_process = [](std::int64_t) {}});
  Rehearsal rehearsal(methods);
  std::string out(introduction);
  for (const peer::MethodSummary& listed : methods.list()) out += section(*methods.find(listed.name), rehearsal);
  return out;
}

}  // namespace duet::app
