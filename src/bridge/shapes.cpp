#include "bridge/shapes.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "bridge/file_uri.h"
#include "bridge/json_members.h"
#include "bridge/source_file.h"
#include "bridge/symbol_list.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"

namespace duet::bridge {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::string_view symbol_kinds[] = {
    "file",   "module",    "namespace", "package",     "class",    "method", "property", "field",         "constructor",
    "enum",   "interface", "function",  "variable",    "constant", "string", "number",   "boolean",       "array",
    "object", "key",       "null",      "enum member", "struct",   "event",  "operator", "type parameter"};
constexpr std::string_view completion_kinds[] = {"text",     "method", "function",  "constructor", "field",
                                                 "variable", "class",  "interface", "module",      "property",
                                                 "unit",     "value",  "enum",      "keyword",     "snippet",
                                                 "color",    "file",   "reference", "folder",      "enum member",
                                                 "constant", "struct", "event",     "operator",    "type parameter"};
constexpr std::string_view severities[] = {"error", "warning", "information", "hint"};

template <std::size_t count>
std::string_view name_from(const std::string_view (&names)[count], const value* number, std::string_view otherwise) {
  if (number == nullptr || !number->is_int64()) return otherwise;
  const std::int64_t index = number->get_int64();
  return index >= 1 && index <= static_cast<std::int64_t>(count) ? names[index - 1] : otherwise;
}

void add_text(object& out, std::string_view name, std::string_view text) {
  if (!text.empty()) out[name] = text;
}

const array* elements(const value& from) { return from.if_array(); }

// Markdown of whatever a hover may hold; documentation of completions has the same forms.
std::string markup_text(const value& contents) {
  if (contents.is_string()) return std::string(contents.get_string());
  if (const array* parts = elements(contents)) {
    std::string out;
    for (const value& part : *parts) {
      const std::string text = markup_text(part);
      if (!text.empty() && !out.empty()) out += "\n\n";
      out += text;
    }
    return out;
  }
  const std::string_view text = text_member(contents, "value");
  const std::string_view language = text_member(contents, "language");
  if (language.empty()) return std::string(text);
  return "```" + std::string(language) + '\n' + std::string(text) + "\n```";
}

object shape_symbol(const value& symbol, const std::string& path, PlaceFinder& places, std::size_t depth) {
  constexpr std::size_t most_depth = 64;
  object out{{"name", text_member(symbol, "name")}, {"kind", symbol_kind(symbol)}};
  add_text(out, "detail", text_member(symbol, "detail"));
  add_text(out, "container", text_member(symbol, "containerName"));
  if (const value* location = member(symbol, "location")) {
    places.add_with_file(out, text_member(*location, "uri"), member(*location, "range"));
    point_at_name(out, {std::string(text_member(symbol, "name")), std::string(text_member(symbol, "name"))});
  } else {
    places.add(out, path, member(symbol, "selectionRange"));
    add_extent(out, symbol, path, places);
  }
  const value* children = member(symbol, "children");
  if (children == nullptr || !children->is_array() || depth >= most_depth) return out;
  array shaped;
  for (const value& child : children->get_array()) shaped.push_back(shape_symbol(child, path, places, depth + 1));
  if (!shaped.empty()) out["children"] = std::move(shaped);
  return out;
}

std::string_view sort_text(const value& item) {
  const std::string_view text = text_member(item, "sortText");
  return text.empty() ? text_member(item, "label") : text;
}

object shape_completion_item(const value& item) {
  object out{{"label", text_member(item, "label")},
             {"kind", name_from(completion_kinds, member(item, "kind"), "text")}};
  add_text(out, "detail", text_member(item, "detail"));
  if (const value* documentation = member(item, "documentation")) {
    add_text(out, "documentation", markup_text(*documentation));
  }
  std::string_view insert = text_member(item, "insertText");
  if (const value* edit = member(item, "textEdit")) insert = text_member(*edit, "newText");
  if (insert != text_member(item, "label")) add_text(out, "insert", insert);
  return out;
}

}  // namespace

std::string_view symbol_kind(const value& symbol) { return name_from(symbol_kinds, member(symbol, "kind"), "symbol"); }

void add_extent(object& out, const value& symbol, const std::string& path, PlaceFinder& places) {
  const value* const range = member(symbol, "range");
  if (range == nullptr) return;
  object extent;
  places.add(extent, path, range);
  extent.erase("text");
  out["extent"] = std::move(extent);
}

std::string path_text(const std::string& path) { return rpc::is_utf8(path) ? path : uri_of(path); }

const Text* PlaceFinder::text_of(const std::string& path) {
  if (const Document* document = documents_.find(path)) {
    has_met_newer_text_ = has_met_newer_text_ || document->version > newest_;
    return &document->text;
  }
  const auto known = read_.find(path);
  if (known != read_.end()) return &known->second;
  std::optional<SourceFile> file = read_source_file(path, std::min(max_source_file, left_));
  if (!file) return nullptr;
  left_ -= file->bytes.size();
  return &read_.emplace(path, Text(std::move(file->bytes))).first->second;
}

void PlaceFinder::add(object& out, const std::string& path, const value* range) {
  if (range == nullptr) return;
  const Position begin = position_member(*range, "start");
  const Position end = position_member(*range, "end");
  const Text* text = text_of(path);
  if (text == nullptr) {
    out["line"] = begin.line + 1;
    out["column"] = begin.character + 1;
    out["endLine"] = end.line + 1;
    out["endColumn"] = end.character + 1;
    return;
  }
  const Place first = text->place(begin, encoding_);
  const Place last = text->place(end, encoding_);
  out["line"] = first.line;
  out["column"] = first.column;
  out["endLine"] = last.line;
  out["endColumn"] = last.column;
  out["text"] = rpc::first_characters(text->line(first.line - 1), most_of_line);
}

void PlaceFinder::add_with_file(object& out, std::string_view uri, const value* range) {
  const std::optional<std::string> path = path_of(uri);
  if (!path) {
    out["uri"] = uri;
    return add(out, {}, range);
  }
  out["file"] = path_text(*path);
  add(out, *path, range);
}

object shape_hover(const value& result, const std::string& path, PlaceFinder& places) {
  const value* contents = member(result, "contents");
  const std::string text = contents != nullptr ? markup_text(*contents) : std::string();
  if (text.empty()) return {{"contents", nullptr}};
  const bool plain = text_member(*contents, "kind") == "plaintext";
  object out{{"contents", text}, {"kind", plain ? "plaintext" : "markdown"}};
  places.add(out, path, member(result, "range"));
  return out;
}

object shape_places(const value& result, PlaceFinder& places, std::size_t most) {
  const array single = result.is_object() ? array{result} : array();
  const array& all = elements(result) != nullptr ? *elements(result) : single;
  array shaped;
  for (const value& place : all) {
    if (shaped.size() == most) break;
    object out;
    if (const std::string_view target = text_member(place, "targetUri"); !target.empty()) {
      places.add_with_file(out, target, member(place, "targetSelectionRange"));
    } else {
      places.add_with_file(out, text_member(place, "uri"), member(place, "range"));
    }
    shaped.push_back(std::move(out));
  }
  object out{{"places", std::move(shaped)}};
  if (all.size() > most) out["more"] = all.size() - most;
  return out;
}

object shape_completion(const value& result) {
  const value* list = result.is_array() ? &result : member(result, "items");
  const value* incomplete = member(result, "isIncomplete");
  std::vector<const value*> items;
  if (list != nullptr && list->is_array()) {
    for (const value& item : list->get_array()) items.push_back(&item);
  }
  std::ranges::stable_sort(items, [](const value* a, const value* b) { return sort_text(*a) < sort_text(*b); });
  array shaped;
  for (const value* item : items) {
    if (shaped.size() == most_places) break;
    shaped.push_back(shape_completion_item(*item));
  }
  object out{{"items", std::move(shaped)},
             {"incomplete", incomplete != nullptr && incomplete->is_bool() && incomplete->get_bool()}};
  if (items.size() > most_places) out["more"] = items.size() - most_places;
  return out;
}

object shape_symbols(const value& result, const std::string& path, PlaceFinder& places) {
  array shaped;
  if (const array* symbols = elements(result)) {
    for (const value& symbol : *symbols) shaped.push_back(shape_symbol(symbol, path, places, 1));
  }
  return {{"symbols", std::move(shaped)}};
}

array shape_diagnostics(const array& items, const std::string& path, PlaceFinder& places) {
  array shaped;
  for (const value& item : items) {
    object out;
    places.add(out, path, member(item, "range"));
    out["severity"] = name_from(severities, member(item, "severity"), "error");
    out["message"] = text_member(item, "message");
    add_text(out, "source", text_member(item, "source"));
    if (const value* code = member(item, "code"); code != nullptr && !code->is_structured()) out["code"] = *code;
    shaped.push_back(std::move(out));
  }
  return shaped;
}

}  // namespace duet::bridge
