#include "app/mcp/code_answers.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <boost/json/array.hpp>

#include "bridge/json_members.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;
using bridge::text_member;

constexpr std::size_t most_of_line = 200;  // bytes of a line that is shown beside a place
constexpr std::array<std::string_view, 4> severities = {"error", "warning", "info", "hint"};

std::size_t number_in(const object& from, std::string_view name, std::size_t otherwise) {
  const value* const found = from.if_contains(name);
  return found != nullptr && found->is_number() ? found->to_number<std::size_t>() : otherwise;
}

std::size_t number_in(const object& from, std::string_view name) { return number_in(from, name, 1); }

std::string place_text(std::string_view file, std::size_t line, std::size_t column) {
  return std::string(file) + ':' + std::to_string(line) + ':' + std::to_string(column);
}

std::string_view trimmed(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return begin == line.npos ? std::string_view() : line.substr(begin);
}

std::string short_line(std::string_view line) {
  const std::string_view part = rpc::first_bytes(line, most_of_line);
  return std::string(part) + (part.size() < line.size() ? "…" : "");
}

// The last line that a range has a character of: some servers end it before the first one of the next line.
std::size_t last_line_of(const object& range, std::size_t line) {
  const std::size_t end = number_in(range, "endLine", line);
  return end > line && number_in(range, "endColumn", 2) == 1 ? end - 1 : end;
}

std::size_t end_line_of(const object& symbol) {
  const value* const extent = symbol.if_contains("extent");
  return last_line_of(extent != nullptr ? extent->as_object() : symbol, number_in(symbol, "line"));
}

Item symbol_item(const object& symbol, std::string_view path, std::string_view file) {
  const std::size_t line = number_in(symbol, "line");
  const std::size_t column = number_in(symbol, "column");
  const std::size_t end_line = end_line_of(symbol);
  Item item;
  item.json = {{"path", path},     {"kind", text_member(symbol, "kind")},
               {"file", file},     {"line", line},
               {"column", column}, {"end_line", end_line}};
  item.text = std::string(path) + "  " + std::string(text_member(symbol, "kind")) + "  " +
              place_text(file, line, column) + '-' + std::to_string(end_line);
  if (const std::string_view detail = text_member(symbol, "detail"); !detail.empty()) {
    const std::string shown = one_line(detail, most_of_line);
    item.json["detail"] = shown;
    item.text += "  " + shown;
  }
  return item;
}

// What stands between the names of a path, as the daemon has it.
std::string_view separator_of(std::string_view file) {
  constexpr std::array<std::string_view, 12> with_colons = {".c",   ".cc",  ".cpp", ".cxx", ".h",   ".hh",
                                                            ".hpp", ".hxx", ".rs",  ".rb",  ".inl", ".ipp"};
  return std::ranges::any_of(with_colons, [&](std::string_view end) { return file.ends_with(end); }) ? "::" : ".";
}

void add_outline(Page& page, const array& symbols, const std::string& container, std::string_view file,
                 std::size_t depth) {
  for (const value& entry : symbols) {
    const object& symbol = entry.as_object();
    const std::string outer = container.empty() ? std::string(text_member(symbol, "container")) : container;
    std::string path = outer.empty() ? "" : outer + std::string(separator_of(file));
    path += text_member(symbol, "name");
    page.items.push_back(symbol_item(symbol, path, file));
    const value* const children = symbol.if_contains("children");
    if (depth > 1 && children != nullptr) add_outline(page, children->as_array(), path, file, depth - 1);
  }
}

Page code_page(const Standing& standing, std::string_view root) {
  Page page;
  standing.add_to(page.head, root);
  page.before = standing.warning();
  page.after = '\n' + standing.summary(root);
  return page;
}

object shown_place(const object& place, std::string_view root) {
  return {{"file", shown_file(text_member(place, "file"), root)},
          {"line", number_in(place, "line")},
          {"column", number_in(place, "column")},
          {"text", short_line(text_member(place, "text"))}};
}

void add_at(Page& page, const object& at, std::string_view root) {
  object shown = shown_place(at, root);
  page.before += "at " + place_text(text_member(shown, "file"), number_in(at, "line"), number_in(at, "column")) + "  " +
                 std::string(trimmed(text_member(shown, "text"))) + '\n';
  page.head["at"] = std::move(shown);
}

Item hover_item(std::string_view hover) {
  Item item{.body = std::string(hover)};
  item.fill = [](Item& filled, std::string_view part, std::size_t) {
    filled.json["hover"] = part;
    filled.text = part;
  };
  return item;
}

// Each line behind its number.
std::string numbered(std::string_view text, std::size_t line) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += '\n' + std::to_string(line++) + "  " + std::string(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Item definition_item(const SourcePart& part, std::string_view root) {
  const std::string file = shown_file(part.file, root);
  Item item{.body = part.text};
  item.json = {{"file", file}, {"line", part.line}, {"column", part.column}, {"end_line", part.end_line}, {"text", ""}};
  const std::string head = '\n' + file + ':' + std::to_string(part.line) + '-' + std::to_string(part.end_line) +
                           ", column " + std::to_string(part.column);
  item.text = head;
  item.fill = [head, body = part.text, part](Item& filled, std::string_view shown, std::size_t begin) {
    const auto before = std::count(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
    const std::size_t first = part.first_line + static_cast<std::size_t>(before);
    if (begin > 0) filled.json["line"] = first;
    filled.json["text"] = shown.ends_with('\n') ? shown.substr(0, shown.size() - 1) : shown;
    filled.text = head + numbered(shown, first);
  };
  return item;
}

// More of it is more of the source.
std::size_t weight_of(const object& extent) {
  constexpr std::size_t of_a_line = 10'000;
  const std::size_t lines = number_in(extent, "endLine") - number_in(extent, "line");
  return lines > 0 ? lines * of_a_line : number_in(extent, "endColumn") - number_in(extent, "column");
}

// The deepest symbol whose name is at the place.
const object* symbol_at(const value& symbols, std::size_t line, std::size_t column) {
  for (const value& entry : symbols.as_array()) {
    const object& symbol = entry.as_object();
    if (const value* const children = symbol.if_contains("children")) {
      if (const object* const inner = symbol_at(*children, line, column)) return inner;
    }
    const std::size_t begin = number_in(symbol, "column");
    const bool is_it =
        number_in(symbol, "line") == line && begin <= column && column <= number_in(symbol, "endColumn", begin);
    if (is_it && symbol.contains("extent")) return &symbol;
  }
  return nullptr;
}

std::size_t rank(std::string_view severity) {
  const std::string_view name = severity == "information" ? "info" : severity;
  const auto* const found = std::ranges::find(severities, name);
  return static_cast<std::size_t>(found - severities.begin());
}

std::string code_text(const object& diagnostic) {
  const value* const code = diagnostic.if_contains("code");
  if (code == nullptr || code->is_null()) return {};
  return code->is_string() ? std::string(code->get_string()) : rpc::to_text(*code);
}

object file_head(const object& answer, std::string_view root) {
  object head{{"file", shown_file(text_member(answer, "file"), root)}, {"fresh", answer.at("fresh").as_bool()}};
  if (const std::string_view reason = text_member(answer, "reason"); !reason.empty()) head["reason"] = reason;
  return head;
}

Item diagnostic_item(const object& diagnostic, const object& head, std::size_t severity) {
  const std::size_t line = number_in(diagnostic, "line");
  const std::size_t column = number_in(diagnostic, "column");
  object shown{{"line", line},
               {"column", column},
               {"end_line", number_in(diagnostic, "endLine", line)},
               {"end_column", number_in(diagnostic, "endColumn", column)},
               {"severity", severities[severity]}};
  const std::string place = place_text(text_member(head, "file"), line, column) + '-' +
                            std::to_string(number_in(shown, "end_line")) + ':' +
                            std::to_string(number_in(shown, "end_column")) + ' ' + std::string(severities[severity]);
  const std::string source(text_member(diagnostic, "source"));
  const std::string code = code_text(diagnostic);
  const std::string by =
      source.empty() && code.empty() ? "" : " [" + source + (source.empty() || code.empty() ? "" : " ") + code + ']';
  const std::string text = short_line(text_member(diagnostic, "text"));
  Item item{.json = head, .body = std::string(text_member(diagnostic, "message"))};
  item.fill = [=](Item& filled, std::string_view part, std::size_t) {
    object whole = shown;
    whole["message"] = part;
    if (!source.empty()) whole["source"] = source;
    if (!code.empty()) whole["code"] = code;
    whole["text"] = text;
    filled.json["diagnostic"] = std::move(whole);
    filled.text = place + ": " + std::string(part) + by + '\n' + "    " + std::string(trimmed(text));
  };
  return item;
}

// An item stands for a file, or for a diagnostic of one; the file is there once on each page.
void add_diagnostic(object& structured, object json) {
  array& files = structured["files"].as_array();
  value diagnostic;
  if (value* const given = json.if_contains("diagnostic")) {
    diagnostic = std::move(*given);
    json.erase("diagnostic");
  }
  const bool is_there = !files.empty() && files.back().at("file") == json.at("file");
  if (!is_there) {
    json["diagnostics"] = array();
    files.push_back(std::move(json));
  }
  if (diagnostic.is_object()) files.back().as_object()["diagnostics"].as_array().push_back(std::move(diagnostic));
}

}  // namespace

void Standing::add(const object& answer) {
  const std::string_view name = text_member(answer, "server");
  if (!name.empty() && server.find(name) == server.npos) server += (server.empty() ? "" : ", ") + std::string(name);
  const value* const is_fresh = answer.if_contains("fresh");
  if (is_fresh != nullptr && is_fresh->is_bool() && !is_fresh->get_bool()) {
    fresh = false;
    if (reason.empty()) reason = text_member(answer, "reason");
  }
  const value* const is_complete = answer.if_contains("complete");
  complete = complete && (is_complete == nullptr || !is_complete->is_bool() || is_complete->get_bool());
  is_indexing = is_indexing || !text_member(answer, "indexing").empty();
  if (note.empty()) note = text_member(answer, "note");
  const value* const more = answer.if_contains("more");
  if (more != nullptr && more->is_number() && note.empty()) note = rpc::to_text(*more) + " more are not told";
}

std::string Standing::warning() const {
  std::string text;
  if (!fresh) text += "NOT FRESH (" + reason + ")\n";
  const bool is_otherwise = !is_indexing && !note.empty();
  if (!complete) text += "INCOMPLETE (" + (is_otherwise ? note : "indexing") + ")\n";
  return text;
}

std::string Standing::summary(std::string_view root) const {
  return server + (fresh ? ", fresh" : ", not fresh") + (complete ? ", complete" : ", incomplete") + ", root " +
         std::string(root) + (note.empty() ? "" : "\n" + note);
}

void Standing::add_to(object& structured, std::string_view root) const {
  structured["server"] = server;
  structured["fresh"] = fresh;
  structured["complete"] = complete;
  if (!fresh) structured["reason"] = reason;
  if (!note.empty()) structured["note"] = note;
  structured["root"] = root;
}

std::string shown_file(std::string_view file, std::string_view root) {
  const bool is_below = file.size() > root.size() + 1 && file.starts_with(root) && file[root.size()] == '/';
  return std::string(is_below ? file.substr(root.size() + 1) : file);
}

Page outline_page(const object& answer, std::string_view file, std::size_t depth, std::string_view root) {
  Standing standing;
  standing.add(answer);
  Page page = code_page(standing, root);
  page.head["symbols"] = array();
  page.add = into_list("symbols");
  add_outline(page, answer.at("symbols").as_array(), {}, shown_file(file, root), depth);
  if (page.items.empty()) page.before += "no symbols\n";
  return page;
}

Page search_page(const object& answer, std::string_view root) {
  Standing standing;
  standing.add(answer);
  Page page = code_page(standing, root);
  page.head["symbols"] = array();
  page.add = into_list("symbols");
  for (const value& entry : answer.at("symbols").as_array()) {
    const object& symbol = entry.as_object();
    page.items.push_back(
        symbol_item(symbol, text_member(symbol, "path"), shown_file(text_member(symbol, "file"), root)));
  }
  if (page.items.empty()) page.before += "no symbols\n";
  return page;
}

SourcePart extent_of(const object& place, const value* symbols) {
  SourcePart part{.file = std::string(text_member(place, "file")),
                  .line = number_in(place, "line"),
                  .column = number_in(place, "column")};
  part.end_line = number_in(place, "endLine", part.line);
  const object* const symbol = symbols != nullptr ? symbol_at(*symbols, part.line, part.column) : nullptr;
  if (symbol != nullptr) {
    const object& extent = symbol->at("extent").as_object();
    const std::size_t first = number_in(extent, "line", part.line);
    if (first != part.line) part.column = number_in(extent, "column");
    part.line = first;
    part.end_line = last_line_of(extent, part.line);
    part.weight = weight_of(extent);
  }
  part.first_line = part.line;
  return part;
}

Page definition_page(const object& at, std::string_view hover, const std::vector<SourcePart>& definitions,
                     const Standing& standing, std::string_view root) {
  Page page = code_page(standing, root);
  add_at(page, at, root);
  page.head["definitions"] = array();
  page.add = [](object& structured, object json) {
    if (const value* const text = json.if_contains("hover")) {
      structured["hover"] = *text;
    } else {
      structured["definitions"].as_array().push_back(std::move(json));
    }
  };
  if (!hover.empty()) page.items.push_back(hover_item(hover));
  for (const SourcePart& part : definitions) page.items.push_back(definition_item(part, root));
  if (definitions.empty()) page.before += "no definition\n";
  return page;
}

Page references_page(const object& answer, std::string_view root) {
  Standing standing;
  standing.add(answer);
  Page page = code_page(standing, root);
  add_at(page, answer.at("at").as_object(), root);
  std::vector<object> places;
  for (const value& place : answer.at("places").as_array()) {
    if (place.as_object().contains("file")) places.push_back(shown_place(place.as_object(), root));
  }
  const auto order = [](const object& a) {
    return std::tuple(text_member(a, "file"), number_in(a, "line"), number_in(a, "column"));
  };
  std::ranges::sort(places, [&](const object& a, const object& b) { return order(a) < order(b); });
  const std::size_t count = places.size() + number_in(answer, "more", 0);
  page.head["count"] = count;
  page.head["references"] = array();
  page.before += "count " + std::to_string(count) + '\n';
  page.add = into_list("references");
  for (object& place : places) {
    Item item;
    item.text = place_text(text_member(place, "file"), number_in(place, "line"), number_in(place, "column")) + "  " +
                std::string(trimmed(text_member(place, "text")));
    item.json = std::move(place);
    page.items.push_back(std::move(item));
  }
  return page;
}

Page diagnostics_page(const std::vector<object>& answers, std::string_view severity, std::string_view root) {
  Standing standing;
  std::size_t errors = 0;
  std::size_t warnings = 0;
  std::vector<Item> items;
  for (const object& answer : answers) {
    standing.add(answer);
    const object head = file_head(answer, root);
    const std::size_t before = items.size();
    for (const value& entry : answer.at("diagnostics").as_array()) {
      const std::size_t how_bad = rank(text_member(entry.as_object(), "severity"));
      errors += how_bad == 0 ? 1 : 0;
      warnings += how_bad == 1 ? 1 : 0;
      if (how_bad <= rank(severity)) items.push_back(diagnostic_item(entry.as_object(), head, how_bad));
    }
    const bool is_fresh = answer.at("fresh").as_bool();
    const std::string standing_text =
        is_fresh ? "fresh" : "NOT FRESH (" + std::string(text_member(head, "reason")) + ')';
    Item file{.json = head, .text = std::string(text_member(head, "file")) + ": " + standing_text};
    if (before == items.size()) file.text += is_fresh ? ", nothing to tell" : ", nothing known";
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(before), std::move(file));
  }
  Page page = code_page(standing, root);
  page.head["files"] = array();
  page.head["errors"] = errors;
  page.head["warnings"] = warnings;
  page.before += "errors " + std::to_string(errors) + ", warnings " + std::to_string(warnings) + '\n';
  page.add = add_diagnostic;
  page.items = std::move(items);
  return page;
}

}  // namespace duet::app::mcp
