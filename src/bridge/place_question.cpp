#include "bridge/place_question.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "bridge/examining.h"
#include "bridge/shapes.h"
#include "bridge/standing.h"
#include "bridge/symbol_list.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

using boost::json::object;

constexpr int content_modified = -32801;  // as LSP has it
constexpr int most_asked = 5;
constexpr char symbols_method[] = "textDocument/documentSymbol";

struct QuestionEntry {
  std::string_view method;
  std::string_view more_params;  // behind textDocument and position
  bool has_place;
};

const QuestionEntry& entry_of(Question question) {
  static constexpr QuestionEntry entries[] = {
      {"textDocument/hover", "", true},
      {"textDocument/definition", "", true},
      {"textDocument/references", R"(,"context":{"includeDeclaration":true})", true},
      {"textDocument/completion", R"(,"context":{"triggerKind":1})", true},
      {symbols_method, "", false},
  };
  return entries[static_cast<std::size_t>(question)];
}

object shape(Question question, const boost::json::value& result, const FilePlace& where, PlaceFinder& places) {
  switch (question) {
    case Question::hover:
      return shape_hover(result, where.path, places);
    case Question::definition:
    case Question::references:
      return shape_places(result, places, where.most);
    case Question::completion:
      return shape_completion(result);
    case Question::symbols:
      return shape_symbols(result, where.path, places);
  }
  return {};
}

void check_line(const Text& text, std::size_t line) {
  if (line > 0 && line <= text.line_count()) return;
  throw rpc::invalid_params("line", "a line from 1 to " + std::to_string(text.line_count()), "number");
}

// Without a column it is the first character of the line that is no blank.
Place place_in(const Text& text, const FilePlace& where) {
  const std::size_t line = where.line.value_or(1);
  check_line(text, line);
  const std::string_view content = text.line(line - 1);
  const std::size_t indent = std::min(content.find_first_not_of(" \t"), content.size());
  return {.line = line, .column = where.column.value_or(indent + 1)};
}

// A line and those near it, the nearest first, of two the one above.
std::vector<std::size_t> lines_near(const Text& text, std::size_t line) {
  constexpr std::size_t farthest = 3;
  std::vector<std::size_t> lines{line};
  for (std::size_t far = 1; far <= farthest; ++far) {
    if (line > far) lines.push_back(line - far);
    if (line + far <= text.line_count()) lines.push_back(line + far);
  }
  return lines;
}

std::optional<Place> find_near(const Text& text, std::size_t line, std::string_view word) {
  for (const std::size_t number : lines_near(text, line)) {
    const std::string_view content = text.line(number - 1);
    const std::optional<std::size_t> at = find_word(content, word);
    if (at) return Place{.line = number, .column = count_characters(content.substr(0, *at)) + 1};
  }
  return std::nullopt;
}

Place place_of_word(const Text& text, std::size_t line, const std::string& word) {
  check_line(text, line);
  if (const std::optional<Place> place = find_near(text, line, word)) return *place;
  std::vector<SymbolName> near;
  for (const std::size_t number : lines_near(text, line)) {
    for (const std::string_view other : components(text.line(number - 1))) {
      near.push_back({std::string(other), std::string(other)});
    }
  }
  throw no_such_symbol(word, near_names(near, word));
}

// Where its name is. The place that a server tells may be that of a decorator above it.
Place place_of(const FoundSymbol& symbol, const Text& text) {
  const Place told{symbol.line, symbol.column};
  return is_where_it_was(symbol) ? told : find_near(text, symbol.line, word_of(symbol.name)).value_or(told);
}

class PlaceQuestion : public std::enable_shared_from_this<PlaceQuestion> {
 public:
  PlaceQuestion(transport::Loop& loop, Inquiry& inquiry, Question question, FilePlace where, base::Duration patience,
                bool is_search)
      : inquiry_(inquiry),
        loop_(loop),
        question_(question),
        where_(std::move(where)),
        deadline_(loop.now() + patience),
        is_search_(is_search) {}

  // The text may have changed since, so every try begins with it.
  void ask() {
    if (asked_++ == most_asked) throw rpc::Error(content_modified, "The text changes all the time");
    const Document& document = look();
    if (is_search_) return search(document);
    if (!entry_of(question_).has_place) return send(document, std::nullopt);
    if (!where_.symbol) return send(document, place_in(document.text, where_));
    if (where_.line) return send(document, place_of_word(document.text, *where_.line, *where_.symbol));
    ask_server(symbols_method, identifier(document) + "}", [this](const boost::json::value& result, auto& places) {
      const FoundSymbol symbol = pick_symbol(list_symbols(result, where_.path, places), *where_.symbol);
      if (places.has_met_newer_text()) return ask();
      if (symbol.line == 0) throw no_such_symbol(*where_.symbol, {});
      const Document& present = look();
      send(present, place_of(symbol, present.text));
    });
  }

 private:
  LanguageServer& server() { return inquiry_.server(); }

  const Document& look() {
    server().check_load();
    const Document* const document = server().documents().look(where_.path);
    if (document == nullptr) throw rpc::invalid_params("file", "a file that can be read", "string");
    return *document;
  }

  static std::string identifier(const Document& document) {
    return R"({"textDocument":{"uri":)" + rpc::quoted(document.uri) + '}';
  }

  // Places in an answer are those of the texts that it was asked about.
  template <typename Take>
  void ask_server(std::string_view method, const std::string& params, Take take) {
    const Encoding encoding = server().capabilities().encoding;
    inquiry_.call(method, params, deadline_ - loop_.now(),
                  [take, encoding, newest = server().documents().newest_version(), self = shared_from_this()](
                      Inquiry& asked, const CallResult& result) {
                    if (result.error) throw rpc::Error(*result.error);
                    PlaceFinder places(asked.server().documents(), encoding, newest);
                    take(rpc::parse_value(result.text), places);
                  });
  }

  void send(const Document& document, const std::optional<Place>& place) {
    const QuestionEntry& entry = entry_of(question_);
    std::string params = identifier(document);
    object at;
    if (place) {
      const std::optional<Position> position = document.text.position(*place, server().capabilities().encoding);
      const std::string_view line = document.text.line(place->line - 1);
      if (!position) {
        throw rpc::invalid_params("column", "a column from 1 to " + std::to_string(count_characters(line) + 1),
                                  "number");
      }
      params += R"(,"position":{"line":)" + std::to_string(position->line) + R"(,"character":)" +
                std::to_string(position->character) + '}';
      at = {{"file", path_text(where_.path)},
            {"line", place->line},
            {"column", place->column},
            {"text", rpc::first_characters(line, most_of_line)}};
    }
    ask_server(entry.method, params.append(entry.more_params) + '}',
               [this, at = std::move(at)](const boost::json::value& result, PlaceFinder& places) {
                 object out = shape(question_, result, where_, places);
                 if (!at.empty()) out["at"] = at;
                 answer(std::move(out), places);
               });
  }

  void search(const Document& document) {
    ask_server(symbols_method, identifier(document) + "}",
               [this](const boost::json::value& result, PlaceFinder& places) {
                 answer(shape_search(list_symbols(result, where_.path, places), *where_.symbol, where_.most), places);
               });
  }

  // If one of the texts is another by now, nobody can tell which places are meant, so it is asked again. So it is if
  // the asked file is another, as long as that helps: the text of another client is not what is on disk.
  void answer(object out, const PlaceFinder& places) {
    Documents& documents = server().documents();
    const Document* const document = documents.find(where_.path);
    const bool is_current = documents.is_current(where_.path, where_.client);
    const bool may_catch_up = asked_ < most_asked && document != nullptr && !document->owner;
    if (places.has_met_newer_text() || (!is_current && may_catch_up && loop_.now() < deadline_)) return ask();
    add_standing(out, server(), where_.path);
    add_freshness(out, is_current);
    inquiry_.answer({.text = rpc::to_text(out)});
  }

  Inquiry& inquiry_;  // which owns this, by the step that it is in
  transport::Loop& loop_;
  Question question_;
  FilePlace where_;
  base::TimePoint deadline_;
  bool is_search_;
  int asked_ = 0;
};

void start_question(transport::Loop& loop, Inquiry& inquiry, const std::shared_ptr<PlaceQuestion>& question,
                    const std::string& path) {
  LanguageServer& server = inquiry.server();
  server.check_load();
  const Document* const document = server.documents().look(path);
  if (document == nullptr) throw rpc::invalid_params("file", "a file that can be read", "string");
  if (!is_examined(server, *document)) {
    return when_examined(loop, inquiry, path, [question](Inquiry&) { question->ask(); });
  }
  if (!document->is_examined) server.documents().note_examined(path);  // also if it publishes later
  question->ask();
}

}  // namespace

void ask_about_place(transport::Loop& loop, Inquiry& inquiry, Question question, const FilePlace& where,
                     base::Duration patience) {
  start_question(loop, inquiry, std::make_shared<PlaceQuestion>(loop, inquiry, question, where, patience, false),
                 where.path);
}

void ask_for_symbols(transport::Loop& loop, Inquiry& inquiry, const FilePlace& where, base::Duration patience) {
  start_question(loop, inquiry,
                 std::make_shared<PlaceQuestion>(loop, inquiry, Question::symbols, where, patience, true), where.path);
}

}  // namespace duet::bridge
