#include "bridge/symbol_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/json/array.hpp>

#include "bridge/choice.h"
#include "bridge/file_uri.h"
#include "bridge/json_members.h"
#include "duet/rpc/json_text.h"

namespace duet::bridge {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::size_t deepest_nesting = 64;
constexpr std::size_t most_symbols = 20'000;
constexpr std::size_t most_candidates = 20;
constexpr std::size_t shown_characters = 64;

// Between the names of a path, as people write it in the file's language.
std::string_view separator_of(std::string_view path) {
  const std::string_view language = language_of(path);
  const bool has_colons = language == "cpp" || language == "c" || language == "rust" || language == "cuda-cpp" ||
                          language == "objective-cpp" || language == "php" || language == "perl";
  return has_colons ? "::" : ".";
}

// A server may have put what it is in into the name already, as gopls does.
std::string joined(std::string_view container, std::string_view separator, std::string_view name) {
  const std::vector<std::string_view> outer = components(container);
  const std::vector<std::string_view> inner = components(name);
  const bool has_it = outer.size() < inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
  if (container.empty() || has_it) return std::string(name);
  return std::string(container) + std::string(separator) + std::string(name);
}

class Lister {
 public:
  Lister(std::string path, PlaceFinder& places) : path_(std::move(path)), places_(places) {}

  void add_all(const value& list, const std::string& container, std::size_t depth) {
    const array* const symbols = list.if_array();
    if (symbols == nullptr || depth > deepest_nesting) return;
    for (const value& symbol : *symbols) {
      if (found_.size() >= most_symbols) return;
      add(symbol, container, depth);
    }
  }
  std::vector<FoundSymbol> take() { return std::move(found_); }

 private:
  void add(const value& symbol, const std::string& container, std::size_t depth) {
    const std::string_view name = text_member(symbol, "name");
    if (name.empty()) return;
    const value* const location = member(symbol, "location");
    const std::string_view uri = location == nullptr ? std::string_view() : text_member(*location, "uri");
    FoundSymbol found{.file = location == nullptr ? path_ : path_of(uri).value_or("")};
    const std::string_view outer = location == nullptr ? container : text_member(symbol, "containerName");
    found.name = {joined(outer, separator_of(found.file), name), std::string(name)};
    found.shown = {{"path", found.name.path}, {"name", name}, {"kind", symbol_kind(symbol)}};
    if (const std::string_view detail = text_member(symbol, "detail"); !detail.empty()) found.shown["detail"] = detail;
    if (location != nullptr) {
      places_.add_with_file(found.shown, uri, member(*location, "range"));
      point_at_name(found.shown, found.name);
    } else {
      add_nested(found.shown, symbol);
    }
    found.line = number_at(found.shown, "line");
    found.column = number_at(found.shown, "column");
    const std::string path = found.name.path;
    found_.push_back(std::move(found));
    if (const value* const children = member(symbol, "children")) add_all(*children, path, depth + 1);
  }

  void add_nested(object& shown, const value& symbol) {
    shown["file"] = path_text(path_);
    places_.add(shown, path_, member(symbol, "selectionRange"));
    add_extent(shown, symbol, path_, places_);
  }

  static std::size_t number_at(const object& shown, std::string_view name) {
    const value* const number = shown.if_contains(name);
    return number == nullptr ? 0 : number->to_number<std::size_t>();
  }

  std::string path_;
  PlaceFinder& places_;
  std::vector<FoundSymbol> found_;
};

std::vector<SymbolName> names_of(const std::vector<FoundSymbol>& symbols) {
  std::vector<SymbolName> names;
  names.reserve(symbols.size());
  for (const FoundSymbol& symbol : symbols) names.push_back(symbol.name);
  return names;
}

rpc::Error refusal(std::string_view wanted, std::string_view expected, std::string_view reason, object more) {
  more["param"] = "symbol";
  more["expected"] = expected;
  more["received"] = rpc::first_characters(wanted, shown_characters);
  more["reason"] = reason;
  return {rpc::code::invalid_params, "Invalid params", more};
}

rpc::Error ambiguous(const std::vector<FoundSymbol>& symbols, const std::vector<std::size_t>& hits,
                     std::string_view wanted) {
  array candidates;
  for (const std::size_t hit : hits) {
    if (candidates.size() == most_candidates) break;
    object candidate;
    for (const char* const name : {"path", "kind", "file", "line", "column"}) {
      if (const value* const shown = symbols[hit].shown.if_contains(name)) candidate[name] = *shown;
    }
    candidates.push_back(std::move(candidate));
  }
  return refusal(wanted, "a name that only one symbol has", "ambiguous",
                 {{"count", hits.size()}, {"candidates", std::move(candidates)}});
}

// A declaration and its definition, as far as that can be seen: servers that tell the type tell overloads apart.
bool are_the_same(const FoundSymbol& one, const FoundSymbol& other) {
  const auto same = [&](const char* name) {
    const value* const first = one.shown.if_contains(name);
    const value* const second = other.shown.if_contains(name);
    return first != nullptr && second != nullptr && *first == *second;
  };
  return one.name.path == other.name.path && one.file == other.file && same("kind") && same("detail");
}

}  // namespace

std::vector<FoundSymbol> list_symbols(const value& result, const std::string& path, PlaceFinder& places) {
  Lister lister(path, places);
  lister.add_all(result, {}, 1);
  return lister.take();
}

std::string_view word_of(const SymbolName& name) {
  const std::vector<std::string_view> parts = components(name.own);
  return parts.empty() ? std::string_view(name.own) : parts.back();
}

void point_at_name(object& shown, const SymbolName& name) {
  const value* const line = shown.if_contains("text");
  if (line == nullptr) return;
  const std::string_view text = line->get_string();
  const auto column = shown.at("column").to_number<std::size_t>();
  const std::string_view rest = text.substr(rpc::first_characters(text, column - 1).size());
  const std::optional<std::size_t> at = find_word(rest, word_of(name));
  if (!at || *at == 0) return;
  const std::size_t begin = column + count_characters(rest.substr(0, *at));
  object extent;
  for (const char* const member : {"line", "column", "endLine", "endColumn"}) extent[member] = shown.at(member);
  shown["extent"] = std::move(extent);
  shown["column"] = begin;
  shown["endLine"] = shown.at("line");
  shown["endColumn"] = begin + count_characters(word_of(name));
}

bool is_where_it_was(const FoundSymbol& symbol) {
  const value* const text = symbol.shown.if_contains("text");
  return text != nullptr && find_word(std::string_view(text->as_string()), word_of(symbol.name));
}

rpc::Error no_such_symbol(std::string_view wanted, const std::vector<std::string>& names) {
  return refusal(wanted, "the name of a symbol", "not-found", {{"near", array(names.begin(), names.end())}});
}

const FoundSymbol& pick_symbol(const std::vector<FoundSymbol>& symbols, std::string_view wanted) {
  const std::vector<SymbolName> names = names_of(symbols);
  const std::vector<std::size_t> hits = best_matches(names, wanted);
  if (hits.empty()) throw no_such_symbol(wanted, near_names(names, wanted));
  const FoundSymbol& last = symbols[hits.back()];
  const bool is_one = std::ranges::all_of(hits, [&](std::size_t hit) { return are_the_same(symbols[hit], last); });
  if (hits.size() > 1 && !is_one) throw ambiguous(symbols, hits, wanted);
  return last;
}

object shape_search(const std::vector<FoundSymbol>& symbols, std::string_view query, std::size_t most) {
  std::vector<std::pair<int, const FoundSymbol*>> found;
  for (const FoundSymbol& symbol : symbols) {
    constexpr int behind_all_steps = 4;
    if (is_found(symbol.name, query)) {
      found.emplace_back(match_step(symbol.name, query).value_or(behind_all_steps), &symbol);
    }
  }
  std::ranges::stable_sort(found, {}, &std::pair<int, const FoundSymbol*>::first);
  array shown;
  for (const auto& [step, symbol] : found) {
    if (shown.size() < most) shown.push_back(symbol->shown);
  }
  object out{{"symbols", std::move(shown)}};
  if (found.size() > most) out["more"] = found.size() - most;
  return out;
}

}  // namespace duet::bridge
