#include "app/methods/lsp_methods.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <boost/describe/class.hpp>

#include "app/doors/roles.h"
#include "app/methods/lsp_results.h"
#include "bridge/file_uri.h"
#include "duet/peer/connection.h"

namespace duet::app {
namespace {

using bridge::Bridge;
using bridge::Question;
using peer::AddedMethod;
using peer::Methods;
using peer::Reply;
using peer::Request;

constexpr double longest = 24 * 60 * 60;

struct File {
  std::string file;
};
BOOST_DESCRIBE_STRUCT(File, (), (file))

struct PlaceInFile {
  std::optional<std::string> file;
  std::optional<std::int64_t> line;
  std::optional<std::int64_t> column;
  std::optional<std::string> path;
  std::optional<std::string> symbol;
  std::optional<std::int64_t> limit;
};
BOOST_DESCRIBE_STRUCT(PlaceInFile, (), (file, line, column, path, symbol, limit))

struct Find {
  std::string query;
  std::optional<std::string> file;
  std::optional<std::string> path;
  std::optional<std::int64_t> limit;
};
BOOST_DESCRIBE_STRUCT(Find, (), (query, file, path, limit))

struct SymbolsOf : File {
  std::optional<std::string> path;
};
BOOST_DESCRIBE_STRUCT(SymbolsOf, (File), (path))

struct DiagnosticsOf : File {
  double waitSeconds = 10;
  std::optional<std::string> path;
};
BOOST_DESCRIBE_STRUCT(DiagnosticsOf, (File), (waitSeconds, path))

struct Notification {
  std::string method;
  std::optional<rpc::Json> params;
  std::optional<std::string> server;
};
BOOST_DESCRIBE_STRUCT(Notification, (), (method, params, server))

struct ServerNotification : Notification {
  std::optional<std::string> path;
};
BOOST_DESCRIBE_STRUCT(ServerNotification, (Notification), (path))

struct ServerRequest : Notification {
  double timeoutSeconds = 30;
  std::optional<std::string> path;
};
BOOST_DESCRIBE_STRUCT(ServerRequest, (Notification), (timeoutSeconds, path))

struct Start {
  std::string server;
  std::optional<std::string> root;
  std::optional<std::string> path;
};
BOOST_DESCRIBE_STRUCT(Start, (), (server, root, path))

constexpr const char* path_summary =
    "Absolute folders, with colons between them, where a server that is not on the daemon's PATH is looked for";

// Asks with what is called when there is an answer, and takes the question back when nobody wants it any more.
template <typename Result, typename Ask>
void ask(Bridge& bridge, Reply<Result> reply, Ask asking) {
  const auto kept = shared(std::move(reply));
  const Bridge::Asked asked = asking([kept](const bridge::CallResult& result) {
    if (result.error) return kept->fail(*result.error);
    if constexpr (std::same_as<Result, rpc::Json>) {
      kept->ok(rpc::Json::view(result.text));
    } else {
      kept->ok(rpc::JsonOf<Result>::view(result.text));
    }
  });
  kept->on_abandoned([&bridge, asked] { bridge.cancel(asked); });
}

std::string path_of(const std::string& file, const Bridge& bridge) {
  const std::optional<std::string> named = bridge::path_of(file);
  if (file.empty() || file.find('\0') != std::string::npos) throw rpc::invalid_params("file", "a path", "string");
  const std::string& path = named ? *named : file;
  // Most are normal already, and need not be taken apart for every question.
  const bool is_normal = path.starts_with('/') && path.find("/.") == path.npos && path.find("//") == path.npos;
  return is_normal ? path : (std::filesystem::path(bridge.project()) / path).lexically_normal().string();
}

std::optional<std::size_t> position_of(std::optional<std::int64_t> number) {
  if (!number) return std::nullopt;
  return *number > 0 ? static_cast<std::size_t>(*number) : 0;  // which there is not
}

base::Duration duration_of(std::string_view name, double seconds) {
  if (!(seconds >= 0 && seconds <= longest)) throw rpc::invalid_params(name, "seconds, up to a day", "number");
  return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

// What is relative would mean another folder here than where the caller is.
std::string folders_in(const std::optional<std::string>& path) {
  constexpr std::size_t longest_path = std::size_t{64} * 1024;
  std::string folders;
  if (!path) return folders;
  if (path->size() > longest_path || path->find('\0') != path->npos) {
    throw rpc::invalid_params("path", "absolute folders with colons between them, up to 64 KiB", "string");
  }
  for (std::size_t begin = 0; begin < path->size();) {
    const std::size_t end = std::min(path->find(':', begin), path->size());
    const std::string_view folder = std::string_view(*path).substr(begin, end - begin);
    if (folder.starts_with('/')) folders.append(folders.empty() ? "" : ":").append(folder);
    begin = end + 1;
  }
  return folders;
}

void refuse_scalar(const rpc::Json& params) {
  const std::string_view type = rpc::json_type(params.text());
  if (type != "object" && type != "array") throw rpc::invalid_params("params", "object or array", type);
}

bridge::RawRequest raw_request(const Notification& sent, const std::optional<std::string>& path,
                               base::Duration patience) {
  if (sent.params) refuse_scalar(*sent.params);
  return {.server = sent.server,
          .method = sent.method,
          .params = sent.params ? std::string(sent.params->text()) : std::string(),
          .patience = patience,
          .folders = folders_in(path)};
}

constexpr const char* file_summary = "A path, from the project's root if it is relative, or a file: URI";

void describe_file(AddedMethod method) { method.describe(&File::file, file_summary); }

std::string name_of_symbol(std::string_view param, const std::string& name) {
  constexpr std::size_t longest_name = 1000;
  if (!name.empty() && name.size() <= longest_name) return name;
  throw rpc::invalid_params(param, "a name of 1 to 1000 bytes", "string");
}

constexpr const char* limit_summary = "How many places or symbols at most, up to 10000; 1000 if not given";

std::size_t limit_of(std::optional<std::int64_t> limit) {
  constexpr std::int64_t most = 10'000;
  const std::int64_t wanted = limit.value_or(bridge::FilePlace().most);
  if (wanted < 1 || wanted > most) throw rpc::invalid_params("limit", "a number from 1 to 10000", "number");
  return static_cast<std::size_t>(wanted);
}

bridge::FilePlace place_of(const PlaceInFile& place, const Bridge& bridge, const Request& request) {
  if (!place.file && !place.symbol) throw rpc::invalid_params("file", "string", "missing");
  if (!place.file && (place.line || place.column))
    throw rpc::invalid_params("line", "nothing without a file", "number");
  if (place.symbol && place.column) throw rpc::invalid_params("symbol", "nothing beside a column", "string");
  bridge::FilePlace where{.line = position_of(place.line),
                          .column = position_of(place.column),
                          .client = request.conversation.peer().connection,
                          .folders = folders_in(place.path),
                          .most = limit_of(place.limit)};
  if (place.file) where.path = path_of(*place.file, bridge);
  if (place.symbol) where.symbol = name_of_symbol("symbol", *place.symbol);
  return where;
}

AddedMethod& describe_notification(AddedMethod& method) {
  return method.describe(&Notification::method, "As LSP has it, e.g. textDocument/hover")
      .describe(&Notification::params, "Goes to the server as it is spelt")
      .describe(&Notification::server, "A name as in the settings");
}

template <typename Result>
void add_question(Methods& methods, Bridge& bridge, Question question, std::string name, std::string summary) {
  const auto handler = [&bridge, question](const PlaceInFile& place, const Request& request, Reply<Result> reply) {
    const bridge::FilePlace where = place_of(place, bridge, request);
    ask(bridge, std::move(reply), [&](auto done) { return bridge.ask(question, where, std::move(done)); });
  };
  methods.add(std::move(name), std::move(summary), handler)
      .read_only()
      .describe(&PlaceInFile::file, file_summary)
      .describe(&PlaceInFile::line, "From 1, which is the default")
      .describe(&PlaceInFile::column, "From 1, in characters; without it the first that is no blank")
      .describe(&PlaceInFile::path, path_summary)
      .describe(&PlaceInFile::limit, limit_summary)
      .describe(&PlaceInFile::symbol,
                "A name instead of a column: in that line or near it; without a line what the file declares, without a "
                "file what the project does, as far as running servers know");
}

void add_find(Methods& methods, Bridge& bridge) {
  const auto handler = [&bridge](const Find& find, const Request& request, Reply<LspFound> reply) {
    bridge::FilePlace where{.symbol = name_of_symbol("query", find.query),
                            .client = request.conversation.peer().connection,
                            .folders = folders_in(find.path),
                            .most = limit_of(find.limit)};
    if (find.file) where.path = path_of(*find.file, bridge);
    ask(bridge, std::move(reply), [&](auto done) { return bridge.find(where, std::move(done)); });
  };
  methods
      .add("lsp.find", "Finds symbols by name, in a file or, as far as running servers know, in the project", handler)
      .read_only()
      .describe(&Find::query, "A name, or the end of its path, as in Server::start; or a part of a name")
      .describe(&Find::file, file_summary)
      .describe(&Find::path, path_summary)
      .describe(&Find::limit, limit_summary);
}

void add_questions(Methods& methods, Bridge& bridge) {
  add_question<LspHover>(methods, bridge, Question::hover, "lsp.hover", "What a language server says about a place");
  add_question<LspPlaces>(methods, bridge, Question::definition, "lsp.definition",
                          "Where the thing at a place is defined");
  add_question<LspPlaces>(methods, bridge, Question::references, "lsp.references",
                          "Where the thing at a place is used");
  add_question<LspCompletion>(methods, bridge, Question::completion, "lsp.completion",
                              "What could be written at a place");
  describe_file(methods
                    .add("lsp.symbols", "What a file declares",
                         [&bridge](const SymbolsOf& of, const Request& request, Reply<LspSymbols> reply) {
                           const bridge::FilePlace where{.path = path_of(of.file, bridge),
                                                         .client = request.conversation.peer().connection,
                                                         .folders = folders_in(of.path)};
                           ask(bridge, std::move(reply),
                               [&](auto done) { return bridge.ask(Question::symbols, where, std::move(done)); });
                         })
                    .read_only()
                    .describe(&SymbolsOf::path, path_summary));
}

void add_diagnostics(Methods& methods, Bridge& bridge) {
  const auto handler = [&bridge](const DiagnosticsOf& of, const Request& request, Reply<LspDiagnostics> reply) {
    const bridge::FilePlace where{.path = path_of(of.file, bridge),
                                  .client = request.conversation.peer().connection,
                                  .folders = folders_in(of.path)};
    const base::Duration wait = duration_of("waitSeconds", of.waitSeconds);
    ask(bridge, std::move(reply), [&](auto done) { return bridge.ask_diagnostics(where, wait, std::move(done)); });
  };
  describe_file(methods
                    .add("lsp.diagnostics",
                         "Errors and warnings of a file's present text; fresh is false if that is not sure", handler)
                    .read_only()
                    .describe(&DiagnosticsOf::waitSeconds,
                              "How long the server may take to look at the present text; 10 if not given")
                    .describe(&DiagnosticsOf::path, path_summary));
}

void add_request(Methods& methods, Bridge& bridge) {
  const auto handler = [&bridge](const ServerRequest& sent, Reply<> reply) {
    bridge::RawRequest request = raw_request(sent, sent.path, duration_of("timeoutSeconds", sent.timeoutSeconds));
    ask(bridge, std::move(reply), [&](auto done) { return bridge.request(std::move(request), std::move(done)); });
  };
  AddedMethod request = methods.add(
      "lsp.request", "Sends a request to a language server, and its result back, as they are spelt", handler);
  describe_notification(request)
      .describe(&ServerRequest::timeoutSeconds, "After that the request is cancelled; 30 if not given")
      .describe(&ServerRequest::path, path_summary);
}

void add_notify(Methods& methods, Bridge& bridge) {
  const auto handler = [&bridge](const ServerNotification& sent, const Request& request, Reply<LspSent> reply) {
    const std::uint64_t client = request.conversation.peer().connection;
    ask(bridge, std::move(reply),
        [&](auto done) { return bridge.notify(client, raw_request(sent, sent.path, {}), std::move(done)); });
  };
  AddedMethod notify = methods.add("lsp.notify",
                                   "Sends a notification to a language server. What it says about a document's text "
                                   "holds until the document is closed or the caller goes away",
                                   handler);
  describe_notification(notify).describe(&ServerNotification::path, path_summary);
}

void add_start(Methods& methods, Bridge& bridge) {
  const auto handler = [&bridge](const Start& start, Reply<LspStarted> reply) {
    std::optional<std::string> root = start.root;
    if (root && root->find('\0') != std::string::npos) throw rpc::invalid_params("root", "a path", "string");
    if (root) root = (std::filesystem::path(bridge.project()) / *root).lexically_normal();
    const std::string folders = folders_in(start.path);
    ask(bridge, std::move(reply),
        [&](auto done) { return bridge.start(start.server, root, std::move(done), folders); });
  };
  methods.add("lsp.start", "Starts a language server before it is needed; answers when it is ready", handler)
      .describe(&Start::server, "A name as in the settings")
      .describe(&Start::root, "The folder it is started in; the project's root if not given")
      .describe(&Start::path, path_summary);
}

void add_stop(Methods& methods, Bridge& bridge) {
  methods
      .add("lsp.stop", "Shuts a language server down; it comes back when it is needed", {"server"},
           [&bridge](const std::string& server, Reply<LspStopped> reply) {
             bridge.stop(server, [kept = shared(std::move(reply))](std::size_t count) { kept->ok({count}); });
           })
      .describe("server", "A name as in the settings");
}

}  // namespace

void add_lsp_methods(Methods& methods, Bridge& bridge) {
  add_start(methods, bridge);
  methods
      .add("lsp.list", "Tells the language servers that have been used and how they are",
           [&bridge] {
             return rpc::JsonOf<LspServers>(boost::json::object{{"servers", bridge.list()}});
           })
      .needs(role::observe);
  add_stop(methods, bridge);
  add_request(methods, bridge);
  add_notify(methods, bridge);
  add_questions(methods, bridge);
  add_find(methods, bridge);
  add_diagnostics(methods, bridge);
}

}  // namespace duet::app
