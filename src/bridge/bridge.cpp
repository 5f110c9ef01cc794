#include "bridge/bridge.h"

#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>

#include "bridge/choice.h"
#include "bridge/client_documents.h"
#include "bridge/diagnostics_question.h"
#include "bridge/examining.h"
#include "bridge/file_uri.h"
#include "bridge/inquiry.h"
#include "bridge/shapes.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

constexpr int content_modified = -32801;  // as LSP has it

struct QuestionEntry {
  std::string_view method;
  std::string_view more_params;  // behind textDocument and position
  bool has_place;
};

const QuestionEntry& entry_of(Question question) {
  static constexpr QuestionEntry entries[] = {
      {"textDocument/hover", "", true},
      {"textDocument/definition", "", true},
      {"textDocument/references", R"(,"context":{"includeDeclaration":true})", true},
      {"textDocument/completion", R"(,"context":{"triggerKind":1})", true},
      {"textDocument/documentSymbol", "", false},
  };
  return entries[static_cast<std::size_t>(question)];
}

const Document& look(LanguageServer& server, const std::string& path) {
  server.check_load();
  const Document* document = server.documents().look(path);
  if (document == nullptr) throw rpc::invalid_params("file", "a file that can be read", "string");
  return *document;
}

Position position_in(const Text& text, const FilePlace& where, Encoding encoding) {
  const std::size_t line = where.line.value_or(1);
  if (line == 0 || line > text.line_count()) {
    throw rpc::invalid_params("line", "a line from 1 to " + std::to_string(text.line_count()), "number");
  }
  const std::string_view content = text.line(line - 1);
  const std::size_t indent = std::min(content.find_first_not_of(" \t"), content.size());
  const Place place{.line = line, .column = where.column.value_or(indent + 1)};
  const std::optional<Position> position = text.position(place, encoding);
  if (position) return *position;
  throw rpc::invalid_params("column", "a column from 1 to " + std::to_string(count_characters(content) + 1), "number");
}

std::string params_of(Question question, const Document& document, const FilePlace& where, Encoding encoding) {
  const QuestionEntry& entry = entry_of(question);
  std::string params = R"({"textDocument":{"uri":)" + rpc::quoted(document.uri) + '}';
  if (entry.has_place) {
    const Position position = position_in(document.text, where, encoding);
    params += R"(,"position":{"line":)" + std::to_string(position.line) + R"(,"character":)" +
              std::to_string(position.character) + '}';
  }
  return params.append(entry.more_params) + '}';
}

boost::json::object shape(Question question, const boost::json::value& result, const std::string& path,
                          PlaceFinder& places) {
  switch (question) {
    case Question::hover:
      return shape_hover(result, path, places);
    case Question::definition:
    case Question::references:
      return shape_places(result, places);
    case Question::completion:
      return shape_completion(result);
    case Question::symbols:
      return shape_symbols(result, path, places);
  }
  return {};
}

// A question about a place, with what is needed to ask it again.
struct PlaceQuestion {
  Question question;
  FilePlace where;
  base::TimePoint deadline;
  int asked = 0;
};

// Places in an answer are those of the texts that it was asked about. If one of them is another by now, nobody can tell
// which places are meant, so it is asked again.
void send_question(transport::Loop& loop, Inquiry& inquiry, PlaceQuestion what, const Document& document) {
  constexpr int most_asked = 5;
  LanguageServer& server = inquiry.server();
  if (what.asked++ == most_asked) throw rpc::Error(content_modified, "The text changes all the time");
  const Encoding encoding = server.capabilities().encoding;
  const std::string params = params_of(what.question, document, what.where, encoding);
  inquiry.call(
      entry_of(what.question).method, params, what.deadline - loop.now(),
      [&loop, what, encoding, newest = server.documents().newest_version()](Inquiry& asked, const CallResult& result) {
        if (result.error) throw rpc::Error(*result.error);
        PlaceFinder places(asked.server().documents(), encoding, newest);
        boost::json::object out = shape(what.question, rpc::parse_value(result.text), what.where.path, places);
        if (places.has_met_newer_text()) {
          return send_question(loop, asked, what, look(asked.server(), what.where.path));
        }
        out["server"] = asked.server().name();
        asked.answer({.text = rpc::to_text(out)});
      });
}

Failure no_server(std::string message) { return {.cause = Cause::no_server, .message = std::move(message)}; }

// Messages that would end the conversation, or that belong to it and not to a client.
bool is_reserved(std::string_view method) {
  return method == "initialize" || method == "initialized" || method == "shutdown" || method == "exit" ||
         method == "$/cancelRequest";
}

void refuse_reserved(const std::string& method) {
  if (is_reserved(method)) throw rpc::invalid_params("method", "a method that the bridge does not use itself", method);
}

}  // namespace

Bridge::Bridge(transport::Loop& loop, base::Log& log, ServerSettings servers, std::string project,
               std::vector<Definition> settings)
    : loop_(loop),
      log_(log),
      settings_(std::move(servers)),
      project_(std::move(project)),
      definitions_(with_well_known(std::move(settings))),
      file_choice_(definitions_) {}

// Whoever still waits is answered; that also lets go of the servers.
Bridge::~Bridge() {
  for (const auto& [key, server] : servers_) server->stop();
  for (const Server& server : leaving_) server->stop();
}

void Bridge::set_definitions(std::vector<Definition> settings) {
  definitions_ = with_well_known(std::move(settings));
  file_choice_ = FileChoice(definitions_);
  roots_.clear();
  std::vector<Server> replaced;
  std::erase_if(servers_, [&](const auto& entry) {
    const bool stays = std::ranges::find(definitions_, entry.second->definition()) != definitions_.end();
    if (!stays) replaced.push_back(entry.second);
    return !stays;
  });
  for (const Server& server : replaced) {
    Documents::Map said = server->documents().take_clients();
    let_go(server);
    hand_over(server->name(), std::move(said));
  }
}

// It is kept until it has ended, and a little longer: whoever tells of the end is part of it.
void Bridge::let_go(const Server& server) {
  leaving_.push_back(server);
  server->stop(lifetime_.bind([this, ended = server.get()] {
    const auto at = std::ranges::find(leaving_, ended, &Server::get);
    loop_.defer([kept = *at] {});
    leaving_.erase(at);
  }));
}

void Bridge::hand_over(const std::string& name, Documents::Map&& documents) {
  const auto same = std::ranges::find(definitions_, name, &Definition::name);
  for (auto& [path, document] : documents) {
    try {
      const Server server = same != definitions_.end() ? server_at(*same, root_of(*same, path)) : server_for_file(path);
      if (!server->documents().adopt(path, std::move(document))) {
        log_.warn("Too much is open to keep a document", {{"file", path_text(path)}});
      }
    } catch (const rpc::Error& error) {
      log_.warn("Nobody takes a document over", {{"file", path_text(path)}, {"what", error.message()}});
    }
  }
}

const Definition& Bridge::definition_named(const std::string& name) const {
  const auto found = std::ranges::find(definitions_, name, &Definition::name);
  if (found != definitions_.end()) return *found;
  boost::json::array accepted;
  for (const Definition& definition : definitions_) accepted.emplace_back(definition.name);
  throw rpc::invalid_params("server", "the name of a language server", rpc::first_characters(name, 64), accepted);
}

Bridge::Server Bridge::server_at(const Definition& definition, const std::string& root) {
  const Key key{definition.name, root};
  if (const auto known = servers_.find(key); known != servers_.end()) return known->second;
  if (servers_.size() >= most_servers) {
    std::erase_if(servers_, [](const auto& entry) {
      return entry.second->state() == LanguageServer::State::stopped && !entry.second->documents().has_clients();
    });
  }
  if (servers_.size() >= most_servers) {
    throw to_error({.cause = Cause::overloaded, .message = "Too many language servers run: stop one"});
  }
  return servers_[key] = std::make_shared<LanguageServer>(loop_, log_, definition, root, settings_);
}

Bridge::Server Bridge::server_for_file(const std::string& path) {
  const std::optional<std::size_t> chosen = file_choice_.choose(path);
  if (!chosen) {
    throw to_error(
        no_server("No language server for such a file: set files of one, as in [lsp.NAME] files = [\"*.x\"]"));
  }
  const Definition& definition = definitions_[*chosen];
  return server_at(definition, root_of(definition, path));
}

// A question costs less than looking for markers in every folder above its file, so for a moment the root is
// remembered.
std::string Bridge::root_of(const Definition& definition, const std::string& path) {
  constexpr std::chrono::seconds remembered{2};
  constexpr std::size_t most_remembered = 1000;
  const base::TimePoint now = loop_.now();
  const Key key{definition.name, path.substr(0, path.rfind('/'))};
  const auto known = roots_.find(key);
  if (known != roots_.end() && now < known->second.until) return known->second.root;
  if (roots_.size() >= most_remembered) roots_.clear();
  Root& root = roots_[key];
  root = {.root = find_root(definition.roots, path, project_), .until = now + remembered};
  return root.root;
}

Bridge::Server Bridge::named_server(const std::string& name, const std::optional<std::string>& path) {
  const Definition& definition = definition_named(name);
  if (path) return server_at(definition, root_of(definition, *path));
  const auto known = servers_.lower_bound({name, ""});
  const bool is_known = known != servers_.end() && known->first.first == name;
  return is_known ? known->second : server_at(definition, project_);
}

Bridge::Server Bridge::only_server() {
  std::vector<Server> found;
  for (const auto& [key, server] : servers_) {
    if (server->state() != LanguageServer::State::stopped) found.push_back(server);
  }
  if (found.size() == 1) return found.front();
  throw to_error(no_server(found.empty() ? "No language server is running: name one" : "Several run: name one"));
}

Bridge::Server Bridge::server_for(const RawRequest& request, const std::optional<std::string>& path) {
  if (request.server) return named_server(*request.server, path);
  return path ? server_for_file(*path) : only_server();
}

Bridge::Asked Bridge::begin(Server server, const std::string& folders, base::Duration patience, Done done,
                            std::function<void(Inquiry&)> then) {
  if (stopping_) throw to_error({.cause = Cause::stopped, .message = "The daemon is stopping"});
  server->offer_folders(folders);
  auto inquiry = std::make_shared<Inquiry>(loop_, std::move(server), log_, std::move(done));
  inquiry->when_ready(patience, [then = std::move(then)](Inquiry& ready) {
    ready.server().check_load();
    then(ready);
  });
  return inquiry;
}

void Bridge::cancel(const Asked& asked) { asked->cancel(); }

Bridge::Asked Bridge::start(const std::string& name, const std::optional<std::string>& root, Done done,
                            const std::string& folders) {
  const Definition& definition = definition_named(name);
  Server server = root ? server_at(definition, *root) : named_server(name, std::nullopt);
  return begin(std::move(server), folders, settings_.patience.ready, std::move(done), [](Inquiry& inquiry) {
    boost::json::object out = inquiry.server().describe();
    out["capabilities"] = inquiry.server().capabilities().all;
    inquiry.answer({.text = rpc::to_text(out)});
  });
}

Bridge::Asked Bridge::ask(Question question, const FilePlace& where, Done done) {
  const auto step = [this, question, where](Inquiry& inquiry) {
    const Document& document = look(inquiry.server(), where.path);
    const auto send = [this, question, where](Inquiry& examined, const Document& about) {
      send_question(loop_, examined, {question, where, loop_.now() + settings_.patience.call}, about);
    };
    if (is_examined(inquiry.server(), document)) {
      if (!document.is_examined) inquiry.server().documents().note_examined(where.path);  // also if it publishes later
      return send(inquiry, document);
    }
    when_examined(loop_, inquiry, where.path,
                  [send, where](Inquiry& examined) { send(examined, look(examined.server(), where.path)); });
  };
  return begin(server_for_file(where.path), where.folders, settings_.patience.ready, std::move(done), step);
}

Bridge::Asked Bridge::ask_diagnostics(const FilePlace& where, base::Duration wait, Done done) {
  return begin(server_for_file(where.path), where.folders, settings_.patience.ready, std::move(done),
               [this, path = where.path, wait](Inquiry& inquiry) { ask_for_diagnostics(loop_, inquiry, path, wait); });
}

Bridge::Asked Bridge::request(RawRequest request, Done done) {
  refuse_reserved(request.method);
  const std::optional<std::string> path = document_in(request.params);
  Server server = server_for(request, path);
  const base::Duration patience = request.patience;
  const std::string folders = request.folders;
  const base::TimePoint begun = loop_.now();
  const auto send = [this, request = std::move(request), path, begun](Inquiry& inquiry) {
    Documents& documents = inquiry.server().documents();
    // One that cannot be read may still mean something to the server.
    path ? void(documents.look(*path)) : documents.send_changes();
    inquiry.call(request.method, request.params, request.patience - (loop_.now() - begun),
                 [](Inquiry& asked, CallResult result) { asked.answer(std::move(result)); });
  };
  return begin(std::move(server), folders, patience, std::move(done), send);
}

Bridge::Asked Bridge::notify(std::uint64_t client, RawRequest notification, Done done) {
  refuse_reserved(notification.method);
  const std::optional<std::string> path = document_in(notification.params);
  Server server = server_for(notification, path);
  const std::string folders = notification.folders;
  const auto send = [client, notification = std::move(notification), path](Inquiry& inquiry) {
    LanguageServer& target = inquiry.server();
    const bool is_about_text =
        path && take_document_notification(target.documents(), client, *path, notification.method, notification.params);
    if (!is_about_text) target.notify(notification.method, notification.params);
    inquiry.answer({.text = R"({"sent":true})"});
  };
  return begin(std::move(server), folders, settings_.patience.ready, std::move(done), send);
}

void Bridge::stop(const std::string& name, const std::function<void(std::size_t)>& then) {
  definition_named(name);
  std::vector<Server> found;
  for (const auto& [key, server] : servers_) {
    if (key.first != name) continue;
    if (server->state() != LanguageServer::State::stopped) {
      found.push_back(server);
    } else {
      server->stop();  // it may have failed to start, which is forgotten
    }
  }
  if (found.empty()) throw to_error(no_server(name + " is not running"));
  const auto left = std::make_shared<std::size_t>(found.size());
  for (const Server& server : found) {
    server->stop([left, count = found.size(), then] {
      if (--*left == 0) then(count);
    });
  }
}

void Bridge::stop_all(std::function<void()> then) {
  stopping_ = true;
  std::vector<Server> all = leaving_;
  for (const auto& [key, server] : servers_) all.push_back(server);
  if (all.empty()) return loop_.defer(std::move(then));
  const auto left = std::make_shared<std::size_t>(all.size());
  for (const Server& server : all) {
    server->stop([left, then] {
      if (--*left == 0) then();
    });
  }
}

void Bridge::client_gone(std::uint64_t client) {
  for (const auto& [key, server] : servers_) server->documents().client_gone(client);
}

boost::json::array Bridge::list() const {
  boost::json::array out;
  for (const auto& [key, server] : servers_) out.push_back(server->describe());
  for (const Server& server : leaving_) out.push_back(server->describe());
  return out;
}

std::size_t Bridge::running() const {
  return leaving_.size() + static_cast<std::size_t>(std::ranges::count_if(servers_, [](const auto& entry) {
           return entry.second->state() != LanguageServer::State::stopped;
         }));
}

}  // namespace duet::bridge
