#include "app/view/lsp_view.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include <boost/json/array.hpp>

#include "app/view/display_text.h"
#include "app/view/file_place.h"
#include "app/view/markdown.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "bridge/text.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

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
  const std::string file = place.contains("file") ? member_text(place, "file") : std::string(of);
  const std::string name = file.empty() ? member_text(place, "uri") : file_for_people(file);
  return style.name(one_line(name)) + ':' + member_text(place, "line") + ':' + member_text(place, "column");
}

// The line, and a mark under the part from the column to the end column.
std::string marked_line(const object& place, const TextStyle& style) {
  const std::string text = member_text(place, "text");
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
           style.faint(one_line(member_text(symbol, "kind"))) + ' ' + one_line(member_text(symbol, "name"));
    if (const std::string detail = member_text(symbol, "detail"); !detail.empty())
      out += "  " + style.faint(one_line(detail));
    out += '\n';
    add_symbols(out, member_list(symbol, "children"), file, depth + 1, style);
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
  const std::string contents = member_text(result, "contents");
  if (contents.empty()) return "nothing is known about this place\n";
  if (member_text(result, "kind") != "plaintext") return plain_markdown(contents, style);
  std::string out;
  for (const std::string_view line : lines_of(contents)) out += one_line(line) + '\n';
  return out;
}

std::string places_view(const object& result, const TextStyle& style) {
  std::string out;
  for (const value& place : member_list(result, "places")) {
    if (place.is_object()) out += place_text(place.get_object(), style) + '\n' + marked_line(place.get_object(), style);
  }
  return out.empty() ? "nothing found\n" : out + more_line(result, style);
}

std::string completion_view(const object& result, const TextStyle& style) {
  const array& items = member_list(result, "items");
  if (items.empty()) return "nothing fits here\n";
  Table table({"LABEL", "KIND", "DETAIL"});
  for (const value& entry : items) {
    if (!entry.is_object()) continue;
    const object& item = entry.get_object();
    std::string label = member_text(item, "label");
    label.erase(0, label.find_first_not_of(' '));
    table.add(
        {{label, Table::Paint::name}, {member_text(item, "kind")}, {member_text(item, "detail"), Table::Paint::faint}});
  }
  return table.text(style, terminal_width(STDOUT_FILENO)) + more_line(result, style);
}

std::string found_view(const object& result, const TextStyle& style) {
  std::string out;
  for (const value& entry : member_list(result, "symbols")) {
    if (!entry.is_object()) continue;
    const object& symbol = entry.get_object();
    out += place_text(symbol, style) + ": " + style.faint(one_line(member_text(symbol, "kind"))) + ' ' +
           one_line(member_text(symbol, "path"));
    if (const std::string detail = member_text(symbol, "detail"); !detail.empty())
      out += "  " + style.faint(one_line(detail));
    out += '\n';
  }
  return out.empty() ? "nothing found\n" : out + more_line(result, style);
}

std::vector<std::string> lacks_of(const object& result) {
  std::vector<std::string> lacks;
  const std::string server = one_line(member_text(result, "server"));
  if (member_text(result, "complete") == "false") {
    lacks.push_back(server + " is still at work (" + one_line(member_text(result, "indexing")) +
                    "): there may be more");
  }
  if (member_text(result, "fresh") == "false" && !result.contains("diagnostics")) {
    lacks.push_back("the file is another by now: this may be about an earlier text");
  }
  if (const std::string note = member_text(result, "note"); !note.empty()) lacks.push_back(one_line(note));
  return lacks;
}

std::string symbol_failure_line(const object& data) {
  const std::string name = "'" + one_line(member_text(data, "received")) + "'";
  std::string all;
  const auto add = [&all](const std::string& text) { all += (all.empty() ? "" : ", ") + one_line(text); };
  if (member_text(data, "reason") == "not-found") {
    for (const value& near : member_list(data, "near")) add(near.is_string() ? std::string(near.get_string()) : "");
    return "no symbol is called " + name + (all.empty() ? "" : "; there is " + all);
  }
  for (const value& entry : member_list(data, "candidates")) {
    if (!entry.is_object()) continue;
    const object& symbol = entry.get_object();
    add(member_text(symbol, "path") + ' ' + member_text(symbol, "kind") + ' ' +
        file_for_people(member_text(symbol, "file")) + ':' + member_text(symbol, "line"));
  }
  return name + " names " + member_text(data, "count") + " symbols: " + all;
}

std::string symbols_view(const object& result, std::string_view file, const TextStyle& style) {
  std::string out;
  add_symbols(out, member_list(result, "symbols"), file, 0, style);
  return out.empty() ? "no symbols\n" : out;
}

// A server that numbers nothing can never be surer than this.
bool are_known(const object& result) {
  return member_text(result, "fresh") != "false" || member_text(result, "reason") == "unversioned";
}

std::string diagnostics_view(const object& result, const TextStyle& style) {
  const std::string file = member_text(result, "file");
  std::string out;
  for (const value& entry : member_list(result, "diagnostics")) {
    if (!entry.is_object()) continue;
    const object& finding = entry.get_object();
    const std::string severity = member_text(finding, "severity");
    std::string origin = member_text(finding, "source");
    if (const std::string code = member_text(finding, "code"); !code.empty())
      origin += (origin.empty() ? "" : " ") + code;
    out += place_text(finding, style, file) + ": " +
           (severity == "error" ? style.fault(severity) : style.heading(severity)) + ": " +
           one_line(member_text(finding, "message"));
    out += origin.empty() ? "\n" : "  " + style.faint('[' + one_line(origin) + ']') + '\n';
    out += marked_line(finding, style);
  }
  const std::string name = one_line(file_for_people(file));
  if (are_known(result)) return out.empty() ? name + ": nothing found\n" : out;
  const bool changed = member_text(result, "reason") == "changed";
  return out + name + ": " + style.fault("not known yet") + ": " +
         (changed ? "it changed meanwhile" : "the server has not looked at it in time; --wait gives it more") +
         (out.empty() ? "" : "; what is shown is about an earlier text") + '\n';
}

std::string servers_view(const object& result, const TextStyle& style) {
  const array& servers = member_list(result, "servers");
  if (servers.empty()) return "no language server has been needed yet\n";
  Table table({"NAME", "STATE", "PID", "DOCUMENTS", "ROOT", "LAST FAILURE"});
  std::string notes;
  for (const value& entry : servers) {
    const object& server = entry.as_object();
    const std::string indexing = member_text(server, "indexing");
    if (const std::string note = member_text(server, "note"); !note.empty()) notes += one_line(note) + '\n';
    if (const std::string folder = member_text(server, "compileCommands"); !folder.empty()) {
      notes +=
          member_text(server, "name") + " has compile_commands.json of " + one_line(file_for_people(folder)) + '\n';
    }
    const value* failure = server.if_contains("failure");
    const std::string state = member_text(server, "state");
    std::string shown_state = state;
    if (!indexing.empty()) shown_state.append(", ").append(indexing);
    table.add({{member_text(server, "name"), Table::Paint::name},
               {shown_state, state == "ready" ? Table::Paint::good : Table::Paint::none},
               {member_text(server, "pid")},
               {member_text(server, "documents")},
               {file_for_people(member_text(server, "root"))},
               {failure != nullptr ? member_text(failure->as_object(), "message") : "", Table::Paint::fault}});
  }
  return table.text(style, terminal_width(STDOUT_FILENO)) + notes;
}

std::string failure_line(std::string_view message, const object& data) {
  std::string out = one_line(message);
  if (const std::string cause = member_text(data, "cause"); !cause.empty()) out = cause + ": " + out;
  const std::string said = last_line(member_text(data, "stderr"));
  const std::string printed = last_line(member_text(data, "stdout"));
  if (!said.empty()) out += "; its stderr ends with: " + said;
  if (said.empty() && !printed.empty()) out += "; it printed: " + printed;
  return out;
}

}  // namespace duet::app
