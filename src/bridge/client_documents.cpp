#include "bridge/client_documents.h"

#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "bridge/file_uri.h"
#include "bridge/json_members.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

using boost::json::value;

std::string_view raw_member(std::string_view from, std::string_view name) {
  std::string_view found;
  if (!from.starts_with('{')) return found;
  rpc::for_each_member(from, [&](std::string_view raw_name, std::string_view text) {
    if (raw_name == name) found = text;
    return true;
  });
  return found;
}

std::string text_of(const value* from, const char* name) {
  if (from == nullptr || !from->is_string()) throw rpc::invalid_params(name, "string", "missing");
  return std::string(from->get_string());
}

std::vector<Documents::Change> changes_of(const value& params) {
  const value* list = member(params, "contentChanges");
  if (list == nullptr || !list->is_array()) throw rpc::invalid_params("contentChanges", "array", "missing");
  std::vector<Documents::Change> changes;
  for (const value& entry : list->get_array()) {
    Documents::Change change{.range = {}, .text = text_of(member(entry, "text"), "text")};
    if (const value* range = member(entry, "range")) {
      const bool is_whole = member(*range, "start") != nullptr && member(*range, "end") != nullptr;
      if (!is_whole) throw rpc::invalid_params("range", "object", "missing");
      change.range = {position_member(*range, "start"), position_member(*range, "end")};
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

std::optional<std::string> document_in(std::string_view params) {
  const std::string_view uri = raw_member(raw_member(params, "textDocument"), "uri");
  return uri.starts_with('"') ? path_of(rpc::decode_string(uri)) : std::nullopt;
}

bool take_document_notification(Documents& documents, std::uint64_t client, const std::string& path,
                                std::string_view method, std::string_view params) {
  if (method == "textDocument/didOpen") {
    const value tree = rpc::parse_value(params);
    const value& document = *member(tree, "textDocument");
    const value* language = member(document, "languageId");
    const bool opened =
        documents.client_opens(client, path, language != nullptr ? text_of(language, "languageId") : std::string(),
                               text_of(member(document, "text"), "text"));
    if (!opened) throw rpc::invalid_params("text", "less, or fewer open documents", "string");
    return true;
  }
  if (method == "textDocument/didChange") {
    const std::vector<Documents::Change> changes = changes_of(rpc::parse_value(params));
    const bool is_open = documents.look(path) != nullptr && documents.client_changes(client, path, changes);
    if (!is_open) throw rpc::invalid_params("uri", "an open document", "string");
    return true;
  }
  if (method != "textDocument/didClose") return false;
  documents.client_closes(path);
  return true;
}

}  // namespace duet::bridge
