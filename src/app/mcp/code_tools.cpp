#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <boost/json/array.hpp>

#include "app/mcp/code_answers.h"
#include "app/mcp/code_questions.h"
#include "app/mcp/page.h"
#include "app/mcp/source_cache.h"
#include "app/mcp/tools.h"
#include "app/view/markdown.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;
using std::chrono::seconds;

constexpr std::size_t most_files_looked_at = 3;
constexpr int most_rounds = 3;  // that a file which changes meanwhile is asked about again

// Which daemon is asked, and what; and the place in the answer to go on from.
struct Question {
  std::string root;
  object params;
  PagePlace from = {};
};

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
    const tl::expected<Scope::Target, ToolError> target = locate_place(call, place);
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
  question.params["limit"] = most_told;
  add_path(question.params);
  return question;
}

// What a call asks about a place; none: it has failed.
std::optional<Question> begin_question(const CallPointer& call, const Arguments& arguments) {
  if (call->home().empty()) return std::nullopt;
  const std::optional<PagePlace> from = page_place(call, arguments);
  if (!from) return std::nullopt;
  tl::expected<Question, ToolError> question = read_place(*call, arguments);
  if (!question) {
    call->fail(question.error());
    return std::nullopt;
  }
  question->from = *from;
  tell_of_servers(call, question->root);
  return std::move(*question);
}

void ask_place(const CallPointer& call, const Question& question, const std::string& method,
               std::function<void(const object&)> then) {
  call->ask(question.root, {{method, question.params}}, about_code(true),
            [call, question, then = std::move(then)](const Call::Parts& answers) {
              if (!answers.front()) return call->fail_refused(answers.front().error(), question.root);
              if (question.params.contains("file") && !is_still_there(call, member_text(question.params, "file")))
                return;
              then(answers.front()->as_object());
            });
}

// The asked file as it is before it is asked about; null if none is named.
std::shared_ptr<SourceCache::Source> asked_source(Call& call, const Arguments& arguments) {
  NamedPlace place{.file = arguments.text("file").value_or("")};
  if (place.file.empty()) return nullptr;
  const tl::expected<Scope::Target, ToolError> target = locate_place(call, place);
  return target ? call.services().sources.find(target->path) : nullptr;
}

std::string hover_text(const object& hover) {
  const value* const contents = hover.if_contains("contents");
  if (contents == nullptr || !contents->is_string()) return {};
  const value* const kind = hover.if_contains("kind");
  const bool is_plain = kind != nullptr && *kind == "plaintext";
  std::string text =
      is_plain ? std::string(contents->get_string()) : plain_markdown(contents->get_string(), TextStyle(false));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

using SourcePointer = std::shared_ptr<SourceCache::Source>;

// The definitions of a name while their sources are gathered.
struct Definitions {
  CallPointer call;
  Arguments arguments;
  int round = 1;
  SourcePointer asked = {};  // the file of the question before it was asked
  Question question = {};
  object at = {};
  std::string hover = {};
  Standing standing = {};
  std::vector<object> places = {};
  std::vector<SourcePointer> sources = {};  // of each place, or null
  SourcePointer here = {};                  // of `at`
};

void ask_definitions(Definitions definitions);

SourcePart source_of(const object& place, const SourcePointer& source, std::size_t context) {
  SourcePart part = extent_of(place, source && source->symbols.is_array() ? &source->symbols : nullptr);
  if (!source) return part;
  part.first_line = part.line - std::min(context, part.line - 1);
  part.text = lines_of(source->text, part.first_line, part.end_line + context);
  return part;
}

// What has changed meanwhile is asked about again: old places in a new text are no answer.
void finish_definitions(Definitions definitions) {
  SourceCache& cache = definitions.call->services().sources;
  const bool is_same =
      cache.is_unchanged(definitions.asked) &&
      std::ranges::all_of(definitions.sources, [&](const auto& source) { return cache.is_unchanged(source); });
  if (!is_same && definitions.round < most_rounds) {
    return ask_definitions({definitions.call, definitions.arguments, definitions.round + 1});
  }
  if (!is_same) definitions.standing.add({{"fresh", false}, {"reason", "changed"}});
  const auto context = static_cast<std::size_t>(definitions.arguments.number("context_lines", 0));
  std::vector<SourcePart> parts;
  for (std::size_t i = 0; i < definitions.places.size(); ++i) {
    parts.push_back(source_of(definitions.places[i], definitions.sources[i], context));
  }
  // Asked about a definition some servers tell where it is declared: what there is more of is the definition.
  const SourcePart here = source_of(definitions.at, definitions.here, context);
  const auto is_less = [&](const SourcePart& part) { return part.weight < here.weight; };
  if (std::ranges::all_of(parts, is_less) && here.weight > 0) parts = {here};
  finish_page(
      definitions.call, definitions.arguments, definitions.question.from,
      definition_page(definitions.at, definitions.hover, parts, definitions.standing, definitions.question.root));
}

// One that is slow to come does not keep what is known already.
void add_hover(Definitions definitions) {
  constexpr seconds longest_wait{5};
  Call::How how = about_code(true);
  how.patience = longest_wait;
  how.on_failure = [definitions](const ToolError&) mutable {
    definitions.standing.add({{"note", "its type and documentation (hover) did not come in time"}});
    finish_definitions(std::move(definitions));
  };
  const CallPointer call = definitions.call;
  const Question question = definitions.question;
  call->ask(question.root, {{"lsp.hover", question.params}}, how,
            [definitions = std::move(definitions)](const Call::Parts& parts) mutable {
              if (parts[0]) definitions.hover = hover_text(parts[0]->as_object());
              if (parts[0]) definitions.standing.add(parts[0]->as_object());
              finish_definitions(std::move(definitions));
            });
}

// Where a definition ends is known from what its file declares.
void look_at_sources(Definitions definitions) {
  std::map<std::string, SourcePointer> unknown;
  for (const object& place : definitions.places) {
    const std::string file(place.at("file").as_string());
    const SourcePointer source = definitions.call->services().sources.find(file);
    definitions.sources.push_back(source);
    if (source && source->symbols.is_null() && unknown.size() < most_files_looked_at) unknown.emplace(file, source);
  }
  const std::string here(definitions.at.at("file").as_string());
  definitions.here = definitions.call->services().sources.find(here);
  if (definitions.here && definitions.here->symbols.is_null()) unknown.emplace(here, definitions.here);
  if (unknown.empty()) return add_hover(std::move(definitions));
  std::vector<Desk::Part> parts;
  for (const auto& [file, source] : unknown) {
    object params{{"file", file}};
    add_path(params);
    parts.push_back({"lsp.symbols", std::move(params)});
  }
  const CallPointer call = definitions.call;
  const std::string root = definitions.question.root;
  call->ask(root, std::move(parts), about_code(true), [definitions, unknown](const Call::Parts& answers) {
    SourceCache& cache = definitions.call->services().sources;
    auto file = unknown.begin();
    for (const Desk::PartAnswer& answer : answers) {
      const SourcePointer& source = (file++)->second;
      const bool is_of_this_text = answer && answer->at("fresh").as_bool() && cache.is_unchanged(source);
      if (is_of_this_text) source->symbols = answer->at("symbols");
    }
    add_hover(definitions);
  });
}

void ask_definitions(Definitions definitions) {
  const CallPointer call = definitions.call;
  definitions.asked = asked_source(*call, definitions.arguments);
  std::optional<Question> question = begin_question(call, definitions.arguments);
  if (!question) return;
  ask_place(call, *question, "lsp.definition", [definitions, question](const object& answer) mutable {
    definitions.question = std::move(*question);
    definitions.at = answer.at("at").as_object();
    definitions.standing.add(answer);
    for (const value& place : answer.at("places").as_array()) {
      if (place.as_object().contains("file")) definitions.places.push_back(place.as_object());
    }
    look_at_sources(std::move(definitions));
  });
}

}  // namespace

void run_code_definition(const CallPointer& call, const Arguments& arguments) { ask_definitions({call, arguments}); }

void run_code_references(const CallPointer& call, const Arguments& arguments) {
  const std::optional<Question> question = begin_question(call, arguments);
  if (!question) return;
  ask_place(call, *question, "lsp.references", [call, arguments, question](const object& answer) {
    finish_page(call, arguments, question->from, references_page(answer, question->root));
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
    NamedPlace place{.file = *file};
    const tl::expected<Scope::Target, ToolError> target = locate_place(*call, place);
    if (!target) return call->fail(target.error());
    root = target->root;
    path = target->path;
  }
  if (query) params = {{"query", *query}, {"limit", most_told}};
  if (file) params["file"] = path;
  add_path(params);
  tell_of_servers(call, root);
  const auto depth = static_cast<std::size_t>(arguments.number("depth", 2));
  call->ask(root, query ? "lsp.find" : "lsp.symbols", std::move(params), about_code(), [=](const value& answer) {
    if (!path.empty() && !is_still_there(call, path)) return;
    const object& symbols = answer.as_object();
    const Page page = query ? search_page(symbols, root) : outline_page(symbols, path, depth, root);
    finish_page(call, arguments, *from, page);
  });
}

}  // namespace duet::app::mcp
