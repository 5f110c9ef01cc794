#include "bridge/bridge.h"

#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>

#include "bridge/choice.h"
#include "bridge/client_documents.h"
#include "bridge/diagnostics_question.h"
#include "bridge/file_uri.h"
#include "bridge/inquiry.h"
#include "bridge/place_question.h"
#include "bridge/project_search.h"
#include "bridge/shapes.h"
#include "bridge/standing.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

// A question that begins with a search: what is asked at present.
struct Chain final : Asking {
  void cancel() override {
    is_cancelled = true;
    if (const auto asked = std::exchange(present, nullptr)) asked->cancel();
  }

  std::shared_ptr<Asking> present;
  bool is_cancelled = false;
};

// Where a symbol of the index is. If the text is not there any more, it is looked for nearby.
FilePlace place_in_index(const FoundSymbol& symbol, FilePlace where) {
  where.path = symbol.file;
  where.line = symbol.line;
  if (is_where_it_was(symbol)) {
    where.column = symbol.column;
    where.symbol.reset();
  } else {
    where.symbol = word_of(symbol.name);
  }
  return where;
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
  Server server = server_at(definition, root_of(definition, path));
  server->look_for_compile_commands();
  return server;
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

std::shared_ptr<Inquiry> Bridge::begin(Server server, const std::string& folders, base::Duration patience, Done done,
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
  if (where.path.empty() && where.symbol) return ask_by_name(question, where, std::move(done));
  return begin(server_for_file(where.path), where.folders, settings_.patience.ready, std::move(done),
               [this, question, where](Inquiry& inquiry) {
                 ask_about_place(loop_, inquiry, question, where, settings_.patience.call);
               });
}

// Nobody but the servers that run knows where something of this name is.
Bridge::Asked Bridge::ask_by_name(Question question, const FilePlace& where, Done done) {
  const auto chain = std::make_shared<Chain>();
  chain->present = search(*where.symbol, [this, chain, question, where, done = std::move(done)](const Found& found) {
    if (chain->is_cancelled) return;
    if (!found) return done({.error = found.error()});
    try {
      const FoundSymbol& symbol = pick_symbol(found->symbols, *where.symbol);
      if (symbol.file.empty() || symbol.line == 0) throw no_such_symbol(*where.symbol, {});
      chain->present = ask(question, place_in_index(symbol, where), done);
    } catch (const rpc::Error& error) {
      done({.error = error});
    }
  });
  return chain;
}

std::shared_ptr<Asking> Bridge::search(const std::string& query, std::function<void(const Found&)> done) {
  std::vector<Server> running;
  std::string names;
  bool may_know = false;
  for (const auto& [key, server] : servers_) {
    if (server->state() == LanguageServer::State::stopped) continue;
    running.push_back(server);
    names += (names.empty() ? "" : ", ") + server->name();
    const bool is_ready = server->state() == LanguageServer::State::ready;
    may_know = may_know || !is_ready || server->capabilities().offers("workspaceSymbolProvider");
  }
  if (running.empty()) throw to_error(no_server("No language server runs: give a file, which starts its server"));
  if (!may_know) throw to_error(ProjectSearch::not_offered_by(names));
  const auto search = std::make_shared<ProjectSearch>(query, settings_.patience.call, running.size(), std::move(done));
  for (const Server& server : running) {
    search->add(begin(
        server, {}, settings_.patience.ready,
        [search, name = server->name()](const CallResult& end) { search->take_end(name, end); },
        [search](Inquiry& inquiry) { search->ask(inquiry); }));
  }
  return search;
}

Bridge::Asked Bridge::find(const FilePlace& where, Done done) {
  if (!where.path.empty()) {
    return begin(server_for_file(where.path), where.folders, settings_.patience.ready, std::move(done),
                 [this, where](Inquiry& inquiry) { ask_for_symbols(loop_, inquiry, where, settings_.patience.call); });
  }
  return search(*where.symbol, [query = *where.symbol, most = where.most, done = std::move(done)](const Found& found) {
    if (!found) return done({.error = found.error()});
    boost::json::object out = shape_search(found->symbols, query, most);
    for (const auto& [name, value] : found->standing) out[name] = value;
    // What a server that was not asked knows may be all there is.
    const bool may_be_elsewhere = out.contains("note") && out.at("symbols").as_array().empty();
    if (may_be_elsewhere) out["complete"] = false;
    add_freshness(out, std::ranges::all_of(found->symbols, is_where_it_was));
    done({.text = rpc::to_text(out)});
  });
}

Bridge::Asked Bridge::ask_diagnostics(const FilePlace& where, base::Duration wait, Done done) {
  return begin(server_for_file(where.path), where.folders, settings_.patience.ready, std::move(done),
               [this, path = where.path, client = where.client, wait](Inquiry& inquiry) {
                 ask_for_diagnostics(loop_, inquiry, path, wait, client);
               });
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
