#include "app/view/markdown.h"

#include <cmark.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/view/display_text.h"
#include "duet/rpc/utf8.h"

namespace duet::app {
namespace {

constexpr std::size_t most_bytes = std::size_t{256} << 10U;
constexpr std::size_t widest_indent = 64;  // what is nested deeper stands no further in

// What stands for `_` and `\_` while the text is parsed: letters like any other, of those that mean nothing.
constexpr std::string_view underscore = "\xEE\x81\x9F";
constexpr std::string_view escaped_underscore = "\xEE\x81\xA0";

std::string with_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0; (at = text.find(from)) != text.npos; text.remove_prefix(at + from.size())) {
    out.append(text.substr(0, at)).append(to);
  }
  return out.append(text);
}

std::string without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape && text[i + 1] == '_') {
      out += escaped_underscore;
      ++i;
    } else if (escape && text[i + 1] == '\\') {
      out += "\\\\";
      ++i;
    } else if (text[i] == '_') {
      out += underscore;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Where text is taken as it is, a backslash stands for itself.
std::string literal_text(const char* text) {
  if (text == nullptr) return {};
  return with_all(with_all(text, underscore, "_"), escaped_underscore, "\\_");
}

std::string plain_text(const char* text) {
  if (text == nullptr) return {};
  return with_all(with_all(text, underscore, "_"), escaped_underscore, "_");
}

// Names of tags that are for the looks of a text. Others may be the author's own words.
constexpr std::string_view known_tags[] = {
    "a",   "abbr", "b",     "blockquote", "br",     "center", "cite", "code",    "dd",  "del",   "details",
    "div", "dl",   "dt",    "em",         "font",   "h1",     "h2",   "h3",      "h4",  "h5",    "h6",
    "hr",  "i",    "img",   "ins",        "kbd",    "li",     "nobr", "ol",      "p",   "pre",   "q",
    "s",   "samp", "small", "span",       "strike", "strong", "sub",  "summary", "sup", "table", "tbody",
    "td",  "th",   "thead", "tr",         "tt",     "u",      "ul",   "var"};

// The name of the tag that the text begins with, in small letters; empty if that is none.
std::string tag_name(std::string_view tag) {
  tag.remove_prefix(tag.starts_with("</") ? 2 : 1);
  std::string name;
  for (const char c : tag) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter) break;
    name += static_cast<char>(c | 0x20);
  }
  return name;
}

// Marks of HTML go, what is between them stays; `<br>` ends a line.
std::string without_tags(std::string_view html) {
  std::string out;
  while (!html.empty()) {
    const std::size_t open = html.find('<');
    out += html.substr(0, open);
    if (open == std::string_view::npos) break;
    html.remove_prefix(open);
    const std::size_t close = html.starts_with("<!--") ? html.find("-->") : html.find('>');
    const std::size_t length = close == std::string_view::npos ? html.size() : html.find('>', close) + 1;
    const std::string name = tag_name(html);
    if (name == "br") out += '\n';
    const bool known = html.starts_with("<!--") || std::ranges::find(known_tags, name) != std::end(known_tags);
    if (!known) out += html.substr(0, length);
    html.remove_prefix(length);
  }
  return out;
}

/// Takes what the parser found, in order, and writes lines.
class MarkdownWriter {
 public:
  explicit MarkdownWriter(const TextStyle& style) : style_(style) {}

  void enter(cmark_node* node) {
    switch (cmark_node_get_type(node)) {
      case CMARK_NODE_LIST:
        return enter_list(node);
      case CMARK_NODE_ITEM:
        return enter_item();
      case CMARK_NODE_BLOCK_QUOTE:
        separate();
        fresh_ = true;
        return deepen("> ", "> ");
      case CMARK_NODE_CODE_BLOCK:
        return put_code(literal_text(cmark_node_get_literal(node)));
      case CMARK_NODE_HTML_BLOCK:
        separate();
        add(without_tags(literal_text(cmark_node_get_literal(node))));
        return end_line();
      case CMARK_NODE_PARAGRAPH:
      case CMARK_NODE_HEADING:
        return separate();
      case CMARK_NODE_TEXT:
        return add(with_all(plain_text(cmark_node_get_literal(node)), "\xC2\xA0", " "));  // of &nbsp;
      case CMARK_NODE_CODE:
        return add(literal_text(cmark_node_get_literal(node)));
      case CMARK_NODE_SOFTBREAK:
      case CMARK_NODE_LINEBREAK:
        return add("\n");
      case CMARK_NODE_HTML_INLINE:
        return add(without_tags(literal_text(cmark_node_get_literal(node))));
      case CMARK_NODE_LINK:
        words_.clear();
        return;
      default:
        return;
    }
  }

  void leave(cmark_node* node) {
    switch (cmark_node_get_type(node)) {
      case CMARK_NODE_LIST:
        lists_.pop_back();
        after_paragraph_ = false;
        return;
      case CMARK_NODE_ITEM:
        if (first_ != indent_) put_line("");  // it is empty
        return rise();
      case CMARK_NODE_BLOCK_QUOTE:
        return rise();
      case CMARK_NODE_HEADING:
        return put_line(style_.heading(one_line(std::exchange(line_, {}))));
      case CMARK_NODE_PARAGRAPH:
        end_line();
        after_paragraph_ = true;
        return;
      case CMARK_NODE_LINK:
        return add_address(plain_text(cmark_node_get_url(node)));
      default:
        return;
    }
  }

  std::string take() {
    while (out_.ends_with("\n\n")) out_.pop_back();
    return std::move(out_);
  }

 private:
  struct List {
    std::optional<int> number;  // none: marks
    bool tight = true;
  };

  void enter_list(cmark_node* node) {
    // What leads to a list stands right above it.
    if (!after_paragraph_) separate();
    after_paragraph_ = false;
    List list{.number = {}, .tight = cmark_node_get_list_tight(node) != 0};
    if (cmark_node_get_list_type(node) == CMARK_ORDERED_LIST) list.number = cmark_node_get_list_start(node);
    lists_.push_back(list);
    fresh_ = true;
  }

  void enter_item() {
    List& list = lists_.back();
    if (!list.tight) separate();
    const std::string marker = list.number ? std::to_string((*list.number)++) + ". " : "- ";
    deepen(marker, std::string(marker.size(), ' '));
    fresh_ = true;
  }

  // What stands before the first line of a block, and before the others. Both are of one length.
  void deepen(std::string_view first, std::string_view others) {
    outer_.push_back(indent_.size());
    if (indent_.size() >= widest_indent) return;
    first_ += first;
    indent_ += others;
  }

  void rise() {
    first_.resize(outer_.back());
    indent_.resize(outer_.back());
    outer_.pop_back();
  }

  // A blank line before a block, unless it is the first one here.
  void separate() {
    after_paragraph_ = false;
    if (!std::exchange(fresh_, false)) put_line("");
  }

  void put_code(std::string_view code) {
    separate();
    while (code.ends_with('\n')) code.remove_suffix(1);
    for (;;) {
      const std::size_t end = code.find('\n');
      put_line("  " + one_line(code.substr(0, end)));
      if (end == code.npos) return;
      code.remove_prefix(end + 1);
    }
  }

  void add(std::string_view text) {
    words_ += text;
    for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
      line_ += text.substr(0, end);
      put_line(one_line(std::exchange(line_, {})));
    }
    line_ += text;
  }

  // Only those that a reader can open; `file:` and the like are for editors.
  void add_address(const std::string& address) {
    const bool leads_to_the_web = address.starts_with("http://") || address.starts_with("https://");
    if (leads_to_the_web && words_ != address) line_ += " (" + address + ")";
  }

  void end_line() {
    if (!line_.empty()) put_line(one_line(std::exchange(line_, {})));
  }

  void put_line(const std::string& harmless) {
    std::string line = std::exchange(first_, indent_) + harmless;
    while (line.ends_with(' ')) line.pop_back();
    if (line.empty() && (out_.empty() || out_.ends_with("\n\n"))) return;
    out_ += line + '\n';
    fresh_ = false;
  }

  const TextStyle& style_;
  std::string out_;
  std::string line_;                // that is being written
  std::string words_;               // of a link
  std::string first_;               // what stands before the next line: the marks of items are there once
  std::string indent_;              // what stands before those behind it
  std::vector<std::size_t> outer_;  // how long that was around each block
  std::vector<List> lists_;
  bool fresh_ = true;  // nothing stands above that a blank line would have to part from
  bool after_paragraph_ = false;
};

}  // namespace

std::string plain_markdown(std::string_view markdown, const TextStyle& style) {
  const std::string text = without_underscores(rpc::first_bytes(markdown, most_bytes));
  const std::unique_ptr<cmark_node, void (*)(cmark_node*)> document(
      cmark_parse_document(text.data(), text.size(), CMARK_OPT_VALIDATE_UTF8), cmark_node_free);
  const std::unique_ptr<cmark_iter, void (*)(cmark_iter*)> steps(cmark_iter_new(document.get()), cmark_iter_free);
  MarkdownWriter out(style);
  for (cmark_event_type event{}; (event = cmark_iter_next(steps.get())) != CMARK_EVENT_DONE;) {
    cmark_node* const node = cmark_iter_get_node(steps.get());
    event == CMARK_EVENT_ENTER ? out.enter(node) : out.leave(node);
  }
  return out.take();
}

}  // namespace duet::app
