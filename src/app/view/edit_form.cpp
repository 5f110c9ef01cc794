#include "app/view/edit_form.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/system/error_code.hpp>

#include "app/view/local_time.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "app/words/blank.h"
#include "app/words/moment.h"
#include "app/words/number.h"
#include "app/words/task_name.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

constexpr std::string_view fence = "---";
constexpr std::string_view blanks = " \t\r";

/// The fields by name, each with the number of its line, and the prompt.
struct FormFields {
  std::map<std::string, std::pair<std::string, std::size_t>, std::less<>> values;
  std::string prompt;
};

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = without_blanks(text)).empty()) {
    words.emplace_back(text.substr(0, text.find_first_of(" ,")));
    text.remove_prefix(std::min(words.back().size() + 1, text.size()));
    if (words.back().empty()) words.pop_back();
  }
  return words;
}

std::string in_line(std::size_t number, const std::string& fault) {
  return "line " + std::to_string(number) + ": " + fault;
}

bool is_field(std::string_view name) {
  return name == "priority" || name == "group" || name == "not-before" || name == "after" || name == "labels";
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// The line end behind the prompt is the editor's.
std::string prompt_in(std::string_view rest) {
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  return std::string(rest);
}

tl::expected<FormFields, std::string> read_form(std::string_view text) {
  FormFields fields;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = without_blanks(next_line(text));
    if (line == fence) {
      fields.prompt = prompt_in(text);
      return fields;
    }
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string name(without_blanks(line.substr(0, equals)));
    if (equals == std::string_view::npos || !is_field(name)) {
      return tl::unexpected(
          in_line(number, "there is no field '" + name + "'; there are priority, group, not-before, after and labels"));
    }
    fields.values[name] = {std::string(without_blanks(line.substr(equals + 1))), number};
  }
  return tl::unexpected("the line '" + std::string(fence) + "' is gone, below which the prompt begins");
}

bool is_bare(std::string_view text, std::string_view special) {
  return !text.empty() && std::ranges::none_of(text, [special](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7F' || special.find(c) != std::string_view::npos;
  });
}

// In quotes, as JSON has them, where it could be taken for something else.
std::string label_part(std::string_view text, std::string_view special) {
  return is_bare(text, special) ? std::string(text) : rpc::quoted(text);
}

std::string label_words(const value* labels) {
  std::string out;
  if (labels == nullptr || !labels->is_object()) return out;
  for (const auto& member : labels->get_object()) {
    const std::string text = member_text(labels->get_object(), member.key());
    out += (out.empty() ? "" : " ") + label_part(member.key(), "\",=") + "=" +
           (text.empty() ? "" : label_part(text, "\","));
  }
  return out;
}

// How long a text in quotes is that stands at the front; 0 if it has no end.
std::size_t length_in_quotes(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return 0;
}

// Takes a name or a value from the front, in quotes or up to one of `ends`. None: the quotes are wrong.
std::optional<std::string> take_label_part(std::string_view& text, std::string_view ends) {
  const bool in_quotes = text.starts_with('"');
  const std::size_t length = in_quotes ? length_in_quotes(text) : std::min(text.find_first_of(ends), text.size());
  const std::string part(text.substr(0, length));
  text.remove_prefix(length);
  if (!in_quotes) return part;
  boost::system::error_code fault;
  const value parsed = boost::json::parse(part, fault);
  return fault || !parsed.is_string() ? std::nullopt : std::optional(std::string(parsed.get_string()));
}

// `name=value "a name"="a value"`. The error is the rest that cannot be read.
tl::expected<object, std::string> labels_in(std::string_view text) {
  object labels;
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,\t"), text.size()));
    if (text.empty()) return labels;
    const std::string_view rest = text;
    const std::optional<std::string> name = take_label_part(text, " ,\t=");
    if (!name || name->empty() || !text.starts_with('=')) return tl::unexpected(std::string(rest));
    text.remove_prefix(1);
    const std::optional<std::string> label = take_label_part(text, " ,\t");
    const bool ends_here = text.empty() || text.find_first_of(" ,\t") == 0;
    if (!label || !ends_here) return tl::unexpected(std::string(rest));
    labels[*name] = *label;
  }
}

// Adds what a field means to the params. The error is what is wrong with it.
std::optional<std::string> add_field(object& params, std::string_view name, const std::string& text,
                                     base::UtcTime now) {
  if (name == "group") {
    params["group"] = text.empty() ? "default" : text;
  } else if (name == "priority") {
    const std::optional<std::int64_t> number = parse_number(text);
    if (!number) return "priority is '" + text + "': it is a whole number";
    params["priority"] = *number;
  } else if (name == "not-before" && text.empty()) {
    params["delaySeconds"] = 0;
  } else if (name == "not-before") {
    const std::optional<Moment> moment = parse_future(text, now);
    if (!moment) return "not-before is '" + text + "': it is " + std::string(future_forms);
    params["notBefore"] = base::utc_text(*moment);
  } else if (name == "after") {
    boost::json::array ids;
    for (const std::string& word : words_in(text)) ids.emplace_back(task_name(word));
    params["after"] = std::move(ids);
  } else {
    tl::expected<object, std::string> labels = labels_in(text);
    if (!labels) return "labels has '" + labels.error() + R"(': it is NAME=VALUE, or "A NAME"="A VALUE")";
    params["labels"] = std::move(*labels);
  }
  return std::nullopt;
}

std::string joined_words_of(const value* list) {
  std::string out;
  if (list == nullptr || !list->is_array()) return out;
  for (const value& entry : list->get_array()) {
    if (entry.is_string()) out.append(out.empty() ? "" : " ").append(entry.get_string());
  }
  return out;
}

}  // namespace

std::string edit_form(const object& record) {
  const value* const metadata = record.if_contains("metadata");
  const value* const after =
      metadata != nullptr && metadata->is_object() ? metadata->get_object().if_contains("after") : nullptr;
  const std::optional<base::UtcTime> not_before = parse_time(member_text(record, "notBefore"));
  return "# " + member_text(record, "id") + ": what is not changed here stays as it is. Lines with # do not count.\n" +
         "priority = " + member_text(record, "priority") + "\n" +                       //
         "group = " + member_text(record, "group") + "\n" +                             //
         "# 14:00, tomorrow 9:30, 2026-11-17 14:00 or +2h; nothing: at once\n" +        //
         "not-before = " + (not_before ? date_and_time(*not_before) : "") + "\n" +      //
         "# ids of tasks that must succeed before; nothing: none\n" +                   //
         "after = " + joined_words_of(after) + "\n" +                                   //
         "# name=value \"a name\"=\"a value\"\n" +                                      //
         "labels = " + label_words(record.if_contains("labels")) + "\n" +               //
         "# The prompt is everything below this line.\n" + std::string(fence) + "\n" +  //
         member_text(record, "prompt") + "\n";
}

tl::expected<object, std::string> edit_params(std::string_view before, std::string_view after, base::UtcTime now) {
  object params;
  if (before == after) return params;
  if (!rpc::is_utf8(after)) return tl::unexpected(std::string("the text is not UTF-8"));
  const tl::expected<FormFields, std::string> old = read_form(before);
  const tl::expected<FormFields, std::string> changed = read_form(after);
  if (!changed) return tl::unexpected(changed.error());
  for (const auto& [name, field] : changed->values) {
    const auto& [text, number] = field;
    if (old && old->values.contains(name) && old->values.at(name).first == text) continue;
    if (const auto fault = add_field(params, name, text, now)) return tl::unexpected(in_line(number, *fault));
  }
  if (old && old->prompt == changed->prompt) return params;
  if (is_blank(changed->prompt)) return tl::unexpected(std::string("the prompt is empty: say what the agent is to do"));
  params["prompt"] = changed->prompt;
  return params;
}

}  // namespace duet::app
