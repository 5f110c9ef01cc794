#include "bridge/project_search.h"

#include <algorithm>
#include <string_view>

#include "bridge/shapes.h"
#include "bridge/standing.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {

void ProjectSearch::cancel() {
  done_ = nullptr;
  for (const std::shared_ptr<Inquiry>& inquiry : std::exchange(inquiries_, {})) inquiry->cancel();
}

namespace {

// What stands behind the last separator, `operator==` of `Server::operator==`; of `(*Server).` the last component.
std::string_view last_name(std::string_view path) {
  const std::size_t colons = path.rfind("::");
  const std::size_t dot = path.rfind('.');
  const std::size_t begin = std::max(colons == path.npos ? 0 : colons + 2, dot == path.npos ? 0 : dot + 1);
  if (begin < path.size()) return path.substr(begin);
  const std::vector<std::string_view> parts = components(path);
  return parts.empty() ? path : parts.back();
}

}  // namespace

Failure ProjectSearch::not_offered_by(const std::string& servers) {
  return {.cause = Cause::no_server,
          .message = servers + ": symbols are not looked for by name alone: give a file",
          .server = servers};
}

// Servers look for a name, and not for a path: what does not fit is left out afterwards.
void ProjectSearch::ask(Inquiry& inquiry) {
  LanguageServer& server = inquiry.server();
  if (!server.capabilities().offers("workspaceSymbolProvider")) {
    return inquiry.fail(not_offered_by(server.name()));
  }
  server.documents().send_changes();
  const std::string params = R"({"query":)" + rpc::quoted(last_name(wanted_)) + '}';
  inquiry.call("workspace/symbol", params, patience_,
               [self = shared_from_this(), newest = server.documents().newest_version()](Inquiry& asked,
                                                                                         const CallResult& result) {
                 if (result.error) throw rpc::Error(*result.error);
                 PlaceFinder places(asked.server().documents(), asked.server().capabilities().encoding, newest);
                 self->take(asked, rpc::parse_value(result.text), places);
                 asked.answer({});
               });
}

void ProjectSearch::take(Inquiry& inquiry, const boost::json::value& symbols, PlaceFinder& places) {
  if (!result_) result_ = Result();
  for (FoundSymbol& symbol : list_symbols(symbols, {}, places)) result_->symbols.push_back(std::move(symbol));
  boost::json::object standing;
  add_standing(standing, inquiry.server(), inquiry.server().root() + "/x");
  boost::json::object& all = result_->standing;
  if (all.empty()) {
    all = std::move(standing);
    return;
  }
  all["server"] = std::string(all.at("server").as_string()) + ", " + inquiry.server().name();
  if (standing.at("complete").as_bool()) return;
  all["complete"] = false;
  all["indexing"] = standing.at("indexing");
}

void ProjectSearch::take_end(const std::string& server, const CallResult& end) {
  if (end.error && !error_) error_ = end.error;
  if (end.error) missing_ += (missing_.empty() ? "" : ", ") + server;
  if (--left_ > 0 || !done_) return;
  inquiries_.clear();
  const Done done = std::exchange(done_, nullptr);
  if (result_ && !missing_.empty()) result_->standing["note"] = "not searched: " + missing_;
  if (result_) return done(std::move(*result_));
  done(tl::unexpected(*error_));
}

}  // namespace duet::bridge
