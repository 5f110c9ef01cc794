#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/code_answers.h"
#include "app/mcp/page.h"
#include "app/mcp/refusals.h"
#include "app/mcp/tools.h"
#include "app/view/markdown.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::size_t most_definitions = 20;
constexpr std::size_t most_files_looked_at = 3;

Call::How about_code(bool keeps_refusals = false) { return {.is_about_code = true, .keeps_refusals = keeps_refusals}; }

// Which daemon is asked, and what.
struct Question {
  std::string root;
  object params;
};

// A server may be on this process's PATH and not on the daemon's.
void add_path(object& params) {
  const char* const path = std::getenv("PATH");
  if (path != nullptr && *path != '\0') params["path"] = path;
}

// `a.cpp:7:21` fills what was not given, unless a file is called so.
tl::expected<Scope::Target, ToolError> locate(Call& call, NamedPlace& place) {
  Scope& scope = call.services().scope;
  const tl::expected<Scope::Target, ToolError> whole = scope.locate_file(place.file);
  const NamedPlace split = split_place(place.file);
  if (whole || !split.line) return whole;
  const tl::expected<Scope::Target, ToolError> file = scope.locate_file(split.file);
  if (!file) return whole;
  if (!place.line) {
    place.line = split.line;
    if (!place.column) place.column = split.column;
  }
  return file;
}

tl::expected<Question, ToolError> read_place(Call& call, const Arguments& arguments) {
  const std::optional<std::string> file = arguments.text("file");
  const std::optional<std::string> symbol = arguments.text("symbol");
  NamedPlace place{.file = file.value_or(""), .line = arguments.number("line"), .column = arguments.number("column")};
  const std::string ways = "file with line and column, file with line and symbol, or symbol";
  if (!file && !symbol) return tl::unexpected(bad_argument("no place is named", ways));
  if (!file && (place.line || place.column))
    return tl::unexpected(bad_argument("'line' is given without 'file'", ways));
  Question question;
  if (symbol) question.params["symbol"] = *symbol;
  if (file) {
    const tl::expected<Scope::Target, ToolError> target = locate(call, place);
    if (!target) return tl::unexpected(target.error());
    question.root = target->root;
    question.params["file"] = target->path;
  } else {
    question.root = *call.services().scope.home();
  }
  if (arguments.has("column") && symbol)
    return tl::unexpected(bad_argument("both 'column' and 'symbol' are given", ways));
  if (symbol) place.column.reset();  // of `a.cpp:7:21`: the name says which character of the line is meant
  if (place.column && !place.line) return tl::unexpected(bad_argument("'column' is given without 'line'", ways));
  if (!symbol && !place.line) return tl::unexpected(bad_argument("only a file is named, no place in it", ways));
  if (place.line) question.params["line"] = *place.line;
  if (place.column) question.params["column"] = *place.column;
  add_path(question.params);
  return question;
}

std::string server_progress(const value& servers) {
  for (const value& entry : servers.at("servers").as_array()) {
    const object& server = entry.as_object();
    const std::string name(server.at("name").as_string());
    if (const value* const work = server.if_contains("indexing"); work != nullptr && work->is_string()) {
      return name + ' ' + std::string(work->get_string());
    }
    if (server.at("state") != "ready" && server.at("state") != "running") return "starting " + name;
  }
  return "waiting for the language server";
}

void tell_of_servers(const CallPointer& call, const std::string& root) {
  call->set_progress([weak = std::weak_ptr<Call>(call), root](const std::function<void(std::string)>& tell) {
    const CallPointer asking = weak.lock();
    if (!asking) return;
    Call::How how{.keeps_refusals = true, .on_failure = [tell](const ToolError&) { tell("starting the daemon"); }};
    asking->ask(root, {{"lsp.list", {}}}, how, [tell](const Call::Parts& parts) {
      tell(parts.front() ? server_progress(*parts.front()) : "waiting for the language server");
    });
  });
}

// Where the asked page begins; none if the cursor is bad, and then the call has been answered.
std::optional<PagePlace> page_place(const CallPointer& call, const Arguments& arguments) {
  const std::optional<std::string> cursor = arguments.text("cursor");
  if (!cursor) return PagePlace();
  const tl::expected<PagePlace, ToolError> place = read_cursor(*cursor, arguments.identity());
  if (place) return *place;
  call->fail(place.error());
  return std::nullopt;
}

void finish_page(const CallPointer& call, const Arguments& arguments, PagePlace from, const Page& page) {
  call->finish(page.cut(from, arguments.max_bytes(), arguments.identity()));
}

// Asks about a place; `then` gets the answers to all questions about it, the first of which was not refused.
void ask_place(const CallPointer& call, const Arguments& arguments, std::vector<std::string> methods,
               std::function<void(const Question&, PagePlace, const Call::Parts&)> then) {
  if (call->home().empty()) return;
  const std::optional<PagePlace> from = page_place(call, arguments);
  if (!from) return;
  const tl::expected<Question, ToolError> question = read_place(*call, arguments);
  if (!question) return call->fail(question.error());
  tell_of_servers(call, question->root);
  std::vector<Desk::Part> parts;
  for (std::string& method : methods) parts.push_back({std::move(method), question->params});
  call->ask(question->root, std::move(parts), about_code(true),
            [call, question = *question, from = *from, then = std::move(then)](const Call::Parts& answers) {
              if (!answers.front()) return call->fail(tool_error_of(answers.front().error(), question.root));
              then(question, from, answers);
            });
}

std::string hover_text(const Desk::PartAnswer& answer) {
  if (!answer) return {};
  const object& hover = answer->as_object();
  const value* const contents = hover.if_contains("contents");
  if (contents == nullptr || !contents->is_string()) return {};
  const value* const kind = hover.if_contains("kind");
  const bool is_plain = kind != nullptr && *kind == "plaintext";
  std::string text =
      is_plain ? std::string(contents->get_string()) : plain_markdown(contents->get_string(), TextStyle(false));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The definitions of a name while their sources are gathered.
struct Definitions {
  CallPointer call;
  Arguments arguments;
  Question question;
  PagePlace from;
  object at;
  std::string hover;
  Standing standing = {};
  std::vector<object> places = {};
};

SourcePart source_part(const Definitions& definitions, const object& place) {
  const auto context = static_cast<std::size_t>(definitions.arguments.number("context_lines", 0));
  const auto source = definitions.call->services().sources.find(std::string(place.at("file").as_string()));
  const bool has_symbols = source && source->symbols.is_array();
  SourcePart part = extent_of(place, has_symbols ? &source->symbols : nullptr);
  if (source) {
    part.first_line = part.line - std::min(context, part.line - 1);
    part.text = lines_of(source->text, part.first_line, part.end_line + context);
  }
  return part;
}

// clangd goes from a definition to its declaration, so that what was asked about may be what is looked for. It is if it
// is a symbol's name and says more than what the server told.
void add_asked(const Definitions& definitions, std::vector<SourcePart>& parts) {
  const std::string file(definitions.at.at("file").as_string());
  const auto source = definitions.call->services().sources.find(file);
  if (!source || !source->symbols.is_array()) return;
  std::optional<object> asked = name_at(source->symbols, definitions.at);
  if (!asked) return;
  (*asked)["file"] = file;
  SourcePart own = source_part(definitions, *asked);
  const bool says_more = std::ranges::all_of(parts, [&](const SourcePart& part) {
    const bool is_same = part.file == own.file && part.line == own.line;
    return !is_same && part.text.size() < own.text.size();
  });
  if (says_more) parts.insert(parts.begin(), std::move(own));
}

void finish_definitions(const Definitions& definitions) {
  std::vector<SourcePart> parts;
  for (const object& place : definitions.places) parts.push_back(source_part(definitions, place));
  add_asked(definitions, parts);
  finish_page(
      definitions.call, definitions.arguments, definitions.from,
      definition_page(definitions.at, definitions.hover, parts, definitions.standing, definitions.question.root));
}

// Where a definition ends is known from what its file declares.
void look_at_sources(const Definitions& definitions) {
  SourceCache& sources = definitions.call->services().sources;
  std::set<std::string> unknown;
  const auto look_at = [&](const object& place) {
    const std::string file(place.at("file").as_string());
    const auto source = sources.find(file);
    if (source && source->symbols.is_null() && unknown.size() < most_files_looked_at) unknown.insert(file);
  };
  look_at(definitions.at);
  for (const object& place : definitions.places) look_at(place);
  if (unknown.empty()) return finish_definitions(definitions);
  std::vector<Desk::Part> parts;
  for (const std::string& file : unknown) {
    object params{{"file", file}};
    add_path(params);
    parts.push_back({"lsp.symbols", std::move(params)});
  }
  definitions.call->ask(definitions.question.root, std::move(parts), about_code(true),
                        [definitions, unknown](const Call::Parts& answers) {
                          auto file = unknown.begin();
                          for (const Desk::PartAnswer& answer : answers) {
                            const auto source = definitions.call->services().sources.find(*file++);
                            const bool is_known = source && answer && answer->at("fresh").as_bool();
                            if (is_known) source->symbols = answer->at("symbols");
                          }
                          finish_definitions(definitions);
                        });
}

}  // namespace

void run_code_definition(const CallPointer& call, const Arguments& arguments) {
  ask_place(call, arguments, {"lsp.definition", "lsp.hover"},
            [call, arguments](const Question& question, PagePlace from, const Call::Parts& answers) {
              const object& answer = answers[0]->as_object();
              Definitions definitions{.call = call,
                                      .arguments = arguments,
                                      .question = question,
                                      .from = from,
                                      .at = answer.at("at").as_object(),
                                      .hover = hover_text(answers[1])};
              definitions.standing.add(answer);
              if (answers[1]) definitions.standing.add(answers[1]->as_object());
              for (const value& place : answer.at("places").as_array()) {
                const bool is_file = place.as_object().contains("file");
                if (is_file && definitions.places.size() < most_definitions) {
                  definitions.places.push_back(place.as_object());
                }
              }
              look_at_sources(definitions);
            });
}

void run_code_references(const CallPointer& call, const Arguments& arguments) {
  ask_place(call, arguments, {"lsp.references"},
            [call, arguments](const Question& question, PagePlace from, const Call::Parts& answers) {
              finish_page(call, arguments, from, references_page(answers[0]->as_object(), question.root));
            });
}

void run_code_symbols(const CallPointer& call, const Arguments& arguments) {
  const std::string home = call->home();
  if (home.empty()) return;
  const std::optional<PagePlace> from = page_place(call, arguments);
  if (!from) return;
  const std::optional<std::string> file = arguments.text("file");
  const std::optional<std::string> query = arguments.text("query");
  if (!file && !query) return call->fail(bad_argument("neither 'file' nor 'query' is given", "one of them"));
  object params;
  std::string root = home;
  std::string path;
  if (file) {
    const tl::expected<Scope::Target, ToolError> target = call->services().scope.locate_file(*file);
    if (!target) return call->fail(target.error());
    root = target->root;
    path = target->path;
    params["file"] = path;
  }
  if (query) params["query"] = *query;
  add_path(params);
  tell_of_servers(call, root);
  const auto depth = static_cast<std::size_t>(arguments.number("depth", 2));
  call->ask(root, query ? "lsp.find" : "lsp.symbols", std::move(params), about_code(), [=](const value& answer) {
    const object& symbols = answer.as_object();
    const Page page = query ? search_page(symbols, root) : outline_page(symbols, path, depth, root);
    finish_page(call, arguments, *from, page);
  });
}

void run_code_diagnostics(const CallPointer& call, const Arguments& arguments) {
  constexpr std::size_t most_files = 20;
  const std::string home = call->home();
  if (home.empty()) return;
  const std::optional<PagePlace> from = page_place(call, arguments);
  if (!from) return;
  const std::vector<std::string> files = arguments.texts("files");
  if (files.empty() || files.size() > most_files) {
    return call->fail(bad_argument("'files' has " + std::to_string(files.size()) + " paths", "1 to 20 paths"));
  }
  std::vector<Scope::Target> targets;
  for (const std::string& file : files) {
    const tl::expected<Scope::Target, ToolError> target = call->services().scope.locate_file(file);
    if (!target) return call->fail(target.error());
    targets.push_back(*target);
  }
  const std::int64_t wait = arguments.number("wait_seconds", 10);
  call->set_total(wait);
  tell_of_servers(call, home);
  const auto answers = std::make_shared<std::vector<object>>(targets.size());
  const auto left = std::make_shared<std::size_t>(targets.size());
  for (std::size_t index = 0; index < targets.size(); ++index) {
    object params{{"file", targets[index].path}, {"waitSeconds", wait}};
    add_path(params);
    call->ask(targets[index].root, "lsp.diagnostics", std::move(params), about_code(), [=](const value& answer) {
      (*answers)[index] = answer.as_object();
      if (--*left > 0) return;
      const std::string severity = arguments.text("severity").value_or("warning");
      finish_page(call, arguments, *from, diagnostics_page(*answers, severity, home));
    });
  }
}

}  // namespace duet::app::mcp
