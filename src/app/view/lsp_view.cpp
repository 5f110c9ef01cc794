#include "app/view/lsp_view.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include <boost/json/array.hpp>

#include "app/view/display_text.h"
#include "app/view/file_place.h"
#include "app/view/markdown.h"
#include "app/view/table.h"
#include "bridge/text.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

std::string text_of(const object& from, std::string_view name) {
  const value* found = from.if_contains(name);
  if (found == nullptr || found->is_null()) return {};
  return found->is_string() ? std::string(found->get_string()) : rpc::to_text(*found);
}

const array& list_of(const object& from, std::string_view name) {
  static const array none;
  const value* found = from.if_contains(name);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

std::size_t count_of(const object& from, std::string_view name) {
  const value* found = from.if_contains(name);
  return found != nullptr && found->is_int64() && found->get_int64() > 0 ? static_cast<std::size_t>(found->get_int64())
                                                                         : 0;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// `of`: the file of a place that names none.
std::string place_text(const object& place, const TextStyle& style, std::string_view of = {}) {
  const std::string file = place.contains("file") ? text_of(place, "file") : std::string(of);
  const std::string name = file.empty() ? text_of(place, "uri") : file_for_people(file);
  return style.name(one_line(name)) + ':' + text_of(place, "line") + ':' + text_of(place, "column");
}

// The line, and a mark under the part from the column to the end column.
std::string marked_line(const object& place, const TextStyle& style) {
  const std::string text = text_of(place, "text");
  if (text.find_first_not_of(" \t") == std::string::npos) return {};
  const std::size_t column = std::max<std::size_t>(count_of(place, "column"), 1);
  const std::string_view before = rpc::first_characters(text, column - 1);
  const bool one_line_long = count_of(place, "endLine") == count_of(place, "line");
  const std::size_t end =
      one_line_long ? std::max(count_of(place, "endColumn"), column) : bridge::count_characters(text) + 1;
  const std::string_view marked = rpc::first_characters(std::string_view(text).substr(before.size()), end - column);
  const std::size_t width = std::max<std::size_t>(display_width(one_line(marked)), 1);
  return "    " + one_line(text) + "\n    " + std::string(display_width(one_line(before)), ' ') +
         style.good('^' + std::string(width - 1, '~')) + '\n';
}

void add_symbols(std::string& out, const array& symbols, std::string_view file, std::size_t depth,
                 const TextStyle& style) {
  for (const value& entry : symbols) {
    if (!entry.is_object()) continue;
    const object& symbol = entry.get_object();
    out += place_text(symbol, style, file) + ": " + std::string(2 * depth, ' ') +
           style.faint(one_line(text_of(symbol, "kind"))) + ' ' + one_line(text_of(symbol, "name"));
    if (const std::string detail = text_of(symbol, "detail"); !detail.empty())
      out += "  " + style.faint(one_line(detail));
    out += '\n';
    add_symbols(out, list_of(symbol, "children"), file, depth + 1, style);
  }
}

std::string more_line(const object& result, const TextStyle& style) {
  const std::size_t more = count_of(result, "more");
  return more == 0 ? std::string() : style.faint("and " + std::to_string(more) + " more") + '\n';
}

std::string last_line(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  const auto last = std::find_if(lines.rbegin(), lines.rend(),
                                 [](std::string_view line) { return line.find_first_not_of(" \t") != line.npos; });
  return last == lines.rend() ? std::string() : one_line(rpc::first_characters(*last, 200));
}

}  // namespace

std::string hover_view(const object& result, const TextStyle& style) {
  const std::string contents = text_of(result, "contents");
  if (contents.empty()) return "nothing is known about this place\n";
  if (text_of(result, "kind") != "plaintext") return plain_markdown(contents, style);
  std::string out;
  for (const std::string_view line : lines_of(contents)) out += one_line(line) + '\n';
  return out;
}

std::string places_view(const object& result, const TextStyle& style) {
  std::string out;
  for (const value& place : list_of(result, "places")) {
    if (place.is_object()) out += place_text(place.get_object(), style) + '\n' + marked_line(place.get_object(), style);
  }
  return out.empty() ? "nothing found\n" : out + more_line(result, style);
}

std::string completion_view(const object& result, const TextStyle& style) {
  const array& items = list_of(result, "items");
  if (items.empty()) return "nothing fits here\n";
  Table table({"LABEL", "KIND", "DETAIL"});
  for (const value& entry : items) {
    if (!entry.is_object()) continue;
    const object& item = entry.get_object();
    std::string label = text_of(item, "label");
    label.erase(0, label.find_first_not_of(' '));
    table.add({{label, Table::Paint::name}, {text_of(item, "kind")}, {text_of(item, "detail"), Table::Paint::faint}});
  }
  return table.text(style, terminal_width(STDOUT_FILENO)) + more_line(result, style);
}

std::string found_view(const object& result, const TextStyle& style) {
  std::string out;
  for (const value& entry : list_of(result, "symbols")) {
    if (!entry.is_object()) continue;
    const object& symbol = entry.get_object();
    out += place_text(symbol, style) + ": " + style.faint(one_line(text_of(symbol, "kind"))) + ' ' +
           one_line(text_of(symbol, "path"));
    if (const std::string detail = text_of(symbol, "detail"); !detail.empty())
      out += "  " + style.faint(one_line(detail));
    out += '\n';
  }
  return out.empty() ? "nothing found\n" : out + more_line(result, style);
}

std::vector<std::string> lacks_of(const object& result) {
  std::vector<std::string> lacks;
  const std::string server = one_line(text_of(result, "server"));
  if (text_of(result, "complete") == "false") {
    lacks.push_back(server + " is still at work (" + one_line(text_of(result, "indexing")) + "): there may be more");
  }
  if (text_of(result, "fresh") == "false" && !result.contains("diagnostics")) {
    lacks.push_back("the file is another by now: this may be about an earlier text");
  }
  if (const std::string note = text_of(result, "note"); !note.empty()) lacks.push_back(one_line(note));
  return lacks;
}

std::string symbol_failure_line(const object& data) {
  const std::string name = "'" + one_line(text_of(data, "received")) + "'";
  std::string all;
  const auto add = [&all](const std::string& text) { all += (all.empty() ? "" : ", ") + one_line(text); };
  if (text_of(data, "reason") == "not-found") {
    for (const value& near : list_of(data, "near")) add(near.is_string() ? std::string(near.get_string()) : "");
    return "no symbol is called " + name + (all.empty() ? "" : "; there is " + all);
  }
  for (const value& entry : list_of(data, "candidates")) {
    if (!entry.is_object()) continue;
    const object& symbol = entry.get_object();
    add(text_of(symbol, "path") + ' ' + text_of(symbol, "kind") + ' ' + file_for_people(text_of(symbol, "file")) + ':' +
        text_of(symbol, "line"));
  }
  return name + " names " + text_of(data, "count") + " symbols: " + all;
}

std::string symbols_view(const object& result, std::string_view file, const TextStyle& style) {
  std::string out;
  add_symbols(out, list_of(result, "symbols"), file, 0, style);
  return out.empty() ? "no symbols\n" : out;
}

// A server that numbers nothing can never be surer than this.
bool are_known(const object& result) {
  return text_of(result, "fresh") != "false" || text_of(result, "reason") == "unversioned";
}

std::string diagnostics_view(const object& result, const TextStyle& style) {
  const std::string file = text_of(result, "file");
  std::string out;
  for (const value& entry : list_of(result, "diagnostics")) {
    if (!entry.is_object()) continue;
    const object& finding = entry.get_object();
    const std::string severity = text_of(finding, "severity");
    std::string origin = text_of(finding, "source");
    if (const std::string code = text_of(finding, "code"); !code.empty()) origin += (origin.empty() ? "" : " ") + code;
    out += place_text(finding, style, file) + ": " +
           (severity == "error" ? style.fault(severity) : style.heading(severity)) + ": " +
           one_line(text_of(finding, "message"));
    out += origin.empty() ? "\n" : "  " + style.faint('[' + one_line(origin) + ']') + '\n';
    out += marked_line(finding, style);
  }
  const std::string name = one_line(file_for_people(file));
  if (are_known(result)) return out.empty() ? name + ": nothing found\n" : out;
  const bool changed = text_of(result, "reason") == "changed";
  return out + name + ": " + style.fault("not known yet") + ": " +
         (changed ? "it changed meanwhile" : "the server has not looked at it in time; --wait gives it more") +
         (out.empty() ? "" : "; what is shown is about an earlier text") + '\n';
}

std::string servers_view(const object& result, const TextStyle& style) {
  const array& servers = list_of(result, "servers");
  if (servers.empty()) return "no language server has been needed yet\n";
  Table table({"NAME", "STATE", "PID", "DOCUMENTS", "ROOT", "LAST FAILURE"});
  std::string notes;
  for (const value& entry : servers) {
    const object& server = entry.as_object();
    const std::string indexing = text_of(server, "indexing");
    if (const std::string note = text_of(server, "note"); !note.empty()) notes += one_line(note) + '\n';
    if (const std::string folder = text_of(server, "compileCommands"); !folder.empty()) {
      notes += text_of(server, "name") + " has compile_commands.json of " + one_line(file_for_people(folder)) + '\n';
    }
    const value* failure = server.if_contains("failure");
    const std::string state = text_of(server, "state");
    std::string shown_state = state;
    if (!indexing.empty()) shown_state.append(", ").append(indexing);
    table.add({{text_of(server, "name"), Table::Paint::name},
               {shown_state, state == "ready" ? Table::Paint::good : Table::Paint::none},
               {text_of(server, "pid")},
               {text_of(server, "documents")},
               {file_for_people(text_of(server, "root"))},
               {failure != nullptr ? text_of(failure->as_object(), "message") : "", Table::Paint::fault}});
  }
  return table.text(style, terminal_width(STDOUT_FILENO)) + notes;
}

std::string failure_line(std::string_view message, const object& data) {
  std::string out = one_line(message);
  if (const std::string cause = text_of(data, "cause"); !cause.empty()) out = cause + ": " + out;
  const std::string said = last_line(text_of(data, "stderr"));
  const std::string printed = last_line(text_of(data, "stdout"));
  if (!said.empty()) out += "; its stderr ends with: " + said;
  if (said.empty() && !printed.empty()) out += "; it printed: " + printed;
  return out;
}

}  // namespace duet::app
