#include "task/postgres/migration_file.h"

#include <algorithm>
#include <cstddef>

namespace duet::task::postgres {
namespace {

using Text = std::string_view;
using Kind = MigrationStep::Kind;

constexpr Text mark = "--@";
constexpr Text blanks = " \t\r\n";

Text trimmed(Text text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == Text::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

Text take_line(Text& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const Text line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

bool has_statement(Text text) {
  while (!text.empty()) {
    const Text line = trimmed(take_line(text));
    if (!line.empty() && !line.starts_with("--")) return true;
  }
  return false;
}

std::string with_schema(Text text, Text schema) {
  constexpr Text stands_for = "@schema@";
  std::string out;
  for (std::size_t at = text.find(stands_for); at != Text::npos; at = text.find(stands_for)) {
    out.append(text.substr(0, at)).append(schema);
    text.remove_prefix(at + stands_for.size());
  }
  return out.append(text);
}

Kind kind_of(Text word) { return word == "alone" ? Kind::alone : word == "finish" ? Kind::finish : Kind::transaction; }

void add_steps(std::vector<MigrationStep>& steps, const MigrationFile& file, Text schema) {
  Text rest = file.text;
  MigrationStep step;
  step.version = file.version;
  const auto close = [&] {
    if (!has_statement(step.text)) return;
    const bool same = !steps.empty() && steps.back().version == file.version;
    step.number = same ? steps.back().number + 1 : 1;
    step.text = with_schema(step.text, schema);
    steps.push_back(step);
  };
  while (!rest.empty()) {
    const Text line = take_line(rest);
    if (line.starts_with(mark)) {
      close();
      step.kind = kind_of(trimmed(line.substr(mark.size())));
      step.text.clear();
    } else {
      step.text.append(line).append("\n");
    }
  }
  close();
}

std::string lower(Text text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// Comments of a whole line are not looked at.
std::vector<std::string> first_words(Text text, std::size_t most) {
  std::vector<std::string> words;
  while (!text.empty() && words.size() < most) {
    Text line = trimmed(take_line(text));
    if (line.starts_with("--")) continue;
    while (!line.empty() && words.size() < most) {
      const std::size_t end = std::min(line.find_first_of(blanks), line.size());
      words.emplace_back(line.substr(0, end));
      line = trimmed(line.substr(end));
    }
  }
  return words;
}

}  // namespace

std::vector<MigrationStep> migration_steps(std::span<const MigrationFile> files, Text schema) {
  std::vector<MigrationStep> steps;
  for (const MigrationFile& file : files) add_steps(steps, file, schema);
  return steps;
}

std::string index_made_by(Text statement) {
  constexpr std::size_t enough = 8;
  const std::vector<std::string> words = first_words(statement, enough);
  std::size_t at = 0;
  const auto next_is = [&](Text word) { return at < words.size() && lower(words[at]) == word && ++at > 0; };
  if (!next_is("create")) return "";
  next_is("unique");
  if (!next_is("index") || !next_is("concurrently")) return "";
  if (next_is("if") && (!next_is("not") || !next_is("exists"))) return "";
  return at < words.size() && lower(words[at]) != "on" ? words[at] : "";
}

std::string sql_literal(Text text) {
  std::string out = "'";
  for (const char c : text) out.append(c == '\'' ? 2 : 1, c);
  out += '\'';
  const bool has_backslash = text.find('\\') != Text::npos;
  if (!has_backslash) return out;
  std::string escaped = "E";
  for (const char c : out) escaped.append(c == '\\' ? 2 : 1, c);
  return escaped;
}

}  // namespace duet::task::postgres
