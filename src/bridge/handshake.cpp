#include "bridge/handshake.h"

#include <unistd.h>

#include <algorithm>
#include <exception>

#include <boost/json/array.hpp>

#include "bridge/file_uri.h"
#include "bridge/json_members.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

object folder_of(const std::string& root) {
  const std::string name = root.substr(root.rfind('/') + 1);
  return {{"uri", uri_of(root)}, {"name", name.empty() ? "/" : name}};
}

object text_document_capabilities() {
  const array formats{"markdown", "plaintext"};
  return {
      {"synchronization", {{"didSave", true}}},
      {"hover", {{"contentFormat", formats}}},
      {"completion", {{"completionItem", {{"documentationFormat", formats}}}, {"contextSupport", true}}},
      {"definition", {{"linkSupport", true}}},
      {"references", object()},
      {"documentSymbol", {{"hierarchicalDocumentSymbolSupport", true}}},
      {"publishDiagnostics", {{"versionSupport", true}, {"relatedInformation", true}}},
      {"diagnostic", {{"relatedDocumentSupport", false}}},
  };
}

object client_capabilities() {
  const array encodings{"utf-8", "utf-32", "utf-16"};
  return {
      {"general", {{"positionEncodings", encodings}}},
      {"offsetEncoding", encodings},  // how clangd asks for it up to version 15
      {"workspace", {{"applyEdit", false}, {"configuration", true}, {"workspaceFolders", true}}},
      {"window", {{"workDoneProgress", true}}},
      {"textDocument", text_document_capabilities()},
  };
}

bool is_offered(const value* found) { return found != nullptr && !(found->is_bool() && !found->get_bool()); }

Capabilities::Sync read_sync(const value* kind) {
  if (kind == nullptr || !kind->is_int64()) return Capabilities::Sync::none;
  return kind->get_int64() == 2   ? Capabilities::Sync::incremental
         : kind->get_int64() == 1 ? Capabilities::Sync::full
                                  : Capabilities::Sync::none;
}

// A server that says nothing about documents is told of them all the same: it may ignore that.
void read_document_sync(Capabilities& out) {
  const value* sync = member(out.all, "textDocumentSync");
  if (sync == nullptr) return;
  if (!sync->is_object()) {
    out.sync = read_sync(sync);
    out.takes_documents = out.sync != Capabilities::Sync::none;
    return;
  }
  const object& options = sync->get_object();
  out.sync = read_sync(member(options, "change"));
  out.takes_documents = is_offered(member(options, "openClose"));
  out.wants_saves = is_offered(member(options, "save"));
}

std::string nulls(std::string_view params) {
  std::string out;
  if (!params.starts_with('{')) return "[]";
  rpc::for_each_member(params, [&](std::string_view name, std::string_view items) {
    if (name != "items" || !items.starts_with('[')) return true;
    rpc::for_each_element(items, [&](std::string_view) {
      out += out.empty() ? "null" : ",null";
      return true;
    });
    return false;
  });
  return '[' + out + ']';
}

}  // namespace

bool Capabilities::offers(std::string_view provider) const { return is_offered(member(all, provider)); }

std::string initialize_params(const std::string& root, std::string_view client_version, std::string_view options) {
  object params{
      {"processId", getpid()},
      {"clientInfo", {{"name", "duet-rpc"}, {"version", client_version}}},
      {"rootPath", root},
      {"rootUri", uri_of(root)},
      {"workspaceFolders", array{folder_of(root)}},
      {"capabilities", client_capabilities()},
  };
  if (!options.empty()) params["initializationOptions"] = rpc::parse_value(options);
  return rpc::to_text(params);
}

std::optional<Capabilities> read_initialize_result(std::string_view result, Encoding usual) {
  value tree;
  try {
    tree = rpc::parse_value(result);
  } catch (const std::exception&) {
    return std::nullopt;  // nested beyond all reason
  }
  if (!tree.is_object()) return std::nullopt;
  object& top = tree.get_object();
  const value* capabilities = member(top, "capabilities");
  if (capabilities == nullptr || !capabilities->is_object()) return std::nullopt;
  Capabilities out;
  out.all = capabilities->get_object();
  if (const value* info = member(top, "serverInfo"); info != nullptr && info->is_object()) {
    out.server_name = text_member(info->get_object(), "name");
    out.server_version = text_member(info->get_object(), "version");
  }
  std::string_view encoding = text_member(out.all, "positionEncoding");
  if (encoding.empty()) encoding = text_member(top, "offsetEncoding");
  out.encoding = encoding_named(encoding).value_or(usual);
  out.pulls_diagnostics = out.offers("diagnosticProvider");
  read_document_sync(out);
  return out;
}

void add_answers_to_server(peer::Methods& methods, const std::string& root) {
  constexpr const char* noted[] = {
      "client/registerCapability",
      "client/unregisterCapability",
      "window/workDoneProgress/create",
      "window/showMessageRequest",
      "workspace/codeLens/refresh",
      "workspace/semanticTokens/refresh",
      "workspace/inlayHint/refresh",
      "workspace/inlineValue/refresh",
      "workspace/diagnostic/refresh",
      "workspace/foldingRange/refresh",
      "workspace/textDocumentContent/refresh",
  };
  const auto constant = [](std::string text) { return [text = std::move(text)] { return rpc::Json::view(text); }; };
  for (const char* method : noted) methods.add(method, constant("null"));
  methods.add("workspace/configuration",
              [](const rpc::Json& params) { return rpc::Json::trusted(nulls(params.text())); });
  methods.add("workspace/workspaceFolders", constant(rpc::to_text(array{folder_of(root)})));
  methods.add("workspace/applyEdit",
              constant(R"({"applied":false,"failureReason":"duet-rpc asks questions and edits nothing"})"));
  methods.add("window/showDocument", constant(R"({"success":false})"));
}

}  // namespace duet::bridge
