#include "app/methods/lsp_methods.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bridge/file_uri.h"
#include "duet/peer/connection.h"

namespace duet::app {
namespace {

using bridge::Bridge;
using bridge::Question;
using peer::Answer;
using peer::Reply;
using peer::Request;
using rpc::Param;
using rpc::Type;

constexpr double default_wait = 10;
constexpr double default_patience = 30;
constexpr double longest = 24 * 60 * 60;

// Asks with what is called when there is an answer, and takes the question back when nobody wants it any more.
template <typename Ask>
void ask(Bridge& bridge, Reply reply, Ask asking) {
  auto shared = std::make_shared<Reply>(std::move(reply));
  const Bridge::Asked asked = asking([shared](const bridge::CallResult& result) {
    result.error ? shared->fail(*result.error) : shared->ok(Answer::view(result.text));
  });
  shared->on_abandoned([&bridge, asked] { bridge.cancel(asked); });
}

std::string path_param(const Request& request, const Bridge& bridge) {
  const std::string file = *request.params.text("file");
  const std::optional<std::string> named = bridge::path_of(file);
  if (file.empty() || file.find('\0') != std::string::npos) throw rpc::invalid_params("file", "a path", "string");
  const std::string& path = named ? *named : file;
  // Most are normal already, and need not be taken apart for every question.
  const bool is_normal = path.starts_with('/') && path.find("/.") == path.npos && path.find("//") == path.npos;
  return is_normal ? path : (std::filesystem::path(bridge.project()) / path).lexically_normal().string();
}

std::optional<std::size_t> count_param(const Request& request, std::string_view name) {
  const std::optional<std::int64_t> number = request.params.integer(name);
  if (!number) return std::nullopt;
  return *number > 0 ? static_cast<std::size_t>(*number) : 0;  // which there is not
}

base::Duration seconds_param(const Request& request, std::string_view name, double otherwise) {
  const double seconds = request.params.number(name).value_or(otherwise);
  if (!(seconds >= 0 && seconds <= longest)) throw rpc::invalid_params(name, "seconds, up to a day", "number");
  return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

bridge::RawRequest raw_request(const Request& request) {
  return {.server = request.params.text("server"),
          .method = *request.params.text("method"),
          .params = std::string(request.params.slice("params")),
          .patience = seconds_param(request, "timeoutSeconds", default_patience)};
}

Param file_param() {
  return {.name = "file",
          .type = Type::text,
          .summary = "A path, from the project's root if it is relative, or a file: URI"};
}
Param line_param() {
  return {.name = "line", .type = Type::integer, .required = false, .summary = "From 1, which is the default"};
}
Param column_param() {
  return {.name = "column",
          .type = Type::integer,
          .required = false,
          .summary = "From 1, in characters; without it the first that is no blank"};
}
Param server_param(bool required) {
  return {.name = "server", .type = Type::text, .required = required, .summary = "A name as in the settings"};
}
Param method_param() {
  return {.name = "method", .type = Type::text, .summary = "As LSP has it, e.g. textDocument/hover"};
}
Param params_param() {
  return {.name = "params", .type = Type::any, .required = false, .summary = "Goes to the server as it is spelt"};
}

peer::Method question(Bridge& bridge, Question question, std::string name, std::string summary, bool has_place) {
  std::vector<Param> params{file_param()};
  if (has_place) params.insert(params.end(), {line_param(), column_param()});
  return {.name = std::move(name),
          .summary = std::move(summary),
          .params = std::move(params),
          .handler = {},
          .late_handler = [&bridge, question, has_place](const Request& request, Reply reply) {
            bridge::FilePlace where{.path = path_param(request, bridge)};
            if (has_place) {
              where.line = count_param(request, "line");
              where.column = count_param(request, "column");
            }
            ask(bridge, std::move(reply), [&](auto done) { return bridge.ask(question, where, std::move(done)); });
          }};
}

peer::Method diagnostics(Bridge& bridge) {
  return {.name = "lsp.diagnostics",
          .summary = "Errors and warnings of a file's present text; fresh is false if that is not sure",
          .params = {file_param(),
                     {.name = "waitSeconds",
                      .type = Type::number,
                      .required = false,
                      .summary = "How long the server may take to look at the present text; 10 if not given"}},
          .handler = {},
          .late_handler = [&bridge](const Request& request, Reply reply) {
            const std::string path = path_param(request, bridge);
            const base::Duration wait = seconds_param(request, "waitSeconds", default_wait);
            ask(bridge, std::move(reply),
                [&](auto done) { return bridge.ask_diagnostics(path, wait, std::move(done)); });
          }};
}

peer::Method request_method(Bridge& bridge) {
  return {.name = "lsp.request",
          .summary = "Sends a request to a language server, and its result back, as they are spelt",
          .params = {method_param(),
                     params_param(),
                     server_param(false),
                     {.name = "timeoutSeconds",
                      .type = Type::number,
                      .required = false,
                      .summary = "After that the request is cancelled; 30 if not given"}},
          .returns = "any",
          .handler = {},
          .late_handler = [&bridge](const Request& request, Reply reply) {
            ask(bridge, std::move(reply),
                [&](auto done) { return bridge.request(raw_request(request), std::move(done)); });
          }};
}

peer::Method notify_method(Bridge& bridge) {
  return {.name = "lsp.notify",
          .summary =
              "Sends a notification to a language server. What it says about a document's text holds until the "
              "document is closed or the caller goes away",
          .params = {method_param(), params_param(), server_param(false)},
          .handler = {},
          .late_handler = [&bridge](const Request& request, Reply reply) {
            const std::uint64_t client = request.conversation.peer().connection;
            bridge::RawRequest notification{.server = request.params.text("server"),
                                            .method = *request.params.text("method"),
                                            .params = std::string(request.params.slice("params"))};
            ask(bridge, std::move(reply),
                [&](auto done) { return bridge.notify(client, std::move(notification), std::move(done)); });
          }};
}

peer::Method start_method(Bridge& bridge) {
  return {.name = "lsp.start",
          .summary = "Starts a language server before it is needed; answers when it is ready",
          .params = {server_param(true),
                     {.name = "root",
                      .type = Type::text,
                      .required = false,
                      .summary = "The folder it is started in; the project's root if not given"}},
          .handler = {},
          .late_handler = [&bridge](const Request& request, Reply reply) {
            std::optional<std::string> root = request.params.text("root");
            if (root) root = (std::filesystem::path(bridge.project()) / *root).lexically_normal();
            ask(bridge, std::move(reply),
                [&](auto done) { return bridge.start(*request.params.text("server"), root, std::move(done)); });
          }};
}

peer::Method stop_method(Bridge& bridge) {
  return {.name = "lsp.stop",
          .summary = "Shuts a language server down; it comes back when it is needed",
          .params = {server_param(true)},
          .handler = {},
          .late_handler = [&bridge](const Request& request, Reply reply) {
            auto shared = std::make_shared<Reply>(std::move(reply));
            bridge.stop(*request.params.text("server"), [shared](std::size_t count) {
              shared->ok(Answer::raw(R"({"stopped":)" + std::to_string(count) + '}'));
            });
          }};
}

peer::Method list_method(Bridge& bridge) {
  return {.name = "lsp.list",
          .summary = "Tells the language servers that have been used and how they are",
          .params = {},
          .handler =
              [&bridge](const Request&) {
                return Answer({{"servers", bridge.list()}});
              },
          .late_handler = {}};
}

}  // namespace

void add_lsp_methods(peer::Methods& methods, Bridge& bridge) {
  methods.add(start_method(bridge));
  methods.add(list_method(bridge));
  methods.add(stop_method(bridge));
  methods.add(request_method(bridge));
  methods.add(notify_method(bridge));
  methods.add(question(bridge, Question::hover, "lsp.hover", "What a language server says about a place", true));
  methods.add(question(bridge, Question::definition, "lsp.definition", "Where the thing at a place is defined", true));
  methods.add(question(bridge, Question::references, "lsp.references", "Where the thing at a place is used", true));
  methods.add(question(bridge, Question::completion, "lsp.completion", "What could be written at a place", true));
  methods.add(question(bridge, Question::symbols, "lsp.symbols", "What a file declares", false));
  methods.add(diagnostics(bridge));
}

}  // namespace duet::app
