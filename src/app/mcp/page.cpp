#include "app/mcp/page.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/array.hpp>

#include "app/words/number.h"
#include "app/words/sha256.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;

constexpr std::size_t seal_digits = 12;

// Tells the cursors of different calls apart. Nobody gains anything by forging one.
std::string seal(std::string_view identity) { return sha256(identity).substr(0, seal_digits); }

// As much of a body as is worth trying, cut at the last line end if one is in its second half.
std::string_view part_of(std::string_view body, std::size_t most) {
  const std::string_view part = rpc::first_bytes(body, most);
  if (part.size() == body.size()) return part;
  const std::size_t line_end = part.rfind('\n');
  return line_end != part.npos && line_end >= part.size() / 2 ? part.substr(0, line_end + 1) : part;
}

// An answer while it grows: both of its forms, and how long they are.
class Answer {
 public:
  Answer(const Page& page, std::size_t max_bytes, std::string_view identity)
      : page_(page), structured_(page.head), text_(page.before) {
    constexpr std::size_t longest_place = 20;
    const std::size_t cursor = cursor_text({}, identity).size() + 2 * longest_place;
    const std::size_t line = std::string_view("more: cursor ").size() + cursor + 2;
    const std::size_t fixed_text = page.before.size() + page.after.size() + line;
    const std::size_t fixed_json = rpc::to_text(page.head).size() + cursor + 16;
    text_left_ = max_bytes - std::min(fixed_text, max_bytes);
    json_left_ = max_bytes - std::min(fixed_json, max_bytes);
  }

  bool add(Item item) {
    const std::size_t json_size = rpc::to_text(item.json).size() + 2;
    const std::size_t text_size = item.text.size() + 1;
    if (json_size > json_left_ || text_size > text_left_) return false;
    json_left_ -= json_size;
    text_left_ -= text_size;
    put(std::move(item));
    return true;
  }

  // The only one of its page: shorter if it can be, else as it is.
  void add_alone(const Item& item) {
    constexpr std::array<std::size_t, 4> lengths{300, 100, 40, 8};
    if (item.shorter) {
      for (const std::size_t most : lengths) {
        if (add(item.shorter(most))) return;
      }
    }
    put(item.shorter ? item.shorter(lengths.back()) : item);
  }

  // Adds as much of the item's body as there is room for; returns how many bytes that were.
  std::size_t add_part(const Item& item, std::size_t begin) {
    const std::string_view body = std::string_view(*item.body).substr(begin);
    for (std::size_t most = std::min(body.size(), std::max(text_left_, json_left_)); most > 0; most = most * 3 / 4) {
      const std::string_view part = part_of(body, most);
      if (part.empty()) break;
      Item cut = item;
      item.fill(cut, part, begin);
      if (add(std::move(cut))) return part.size();
    }
    return 0;
  }

  bool is_empty() const { return !has_any_; }

  ToolResult finish(const std::optional<std::string>& next) && {
    if (next) {
      structured_["next"] = *next;
      text_ += "more: cursor " + *next + '\n';
    }
    text_ += page_.after;
    while (text_.ends_with('\n')) text_.pop_back();
    return {.text = std::move(text_), .structured = std::move(structured_)};
  }

 private:
  void put(Item item) {
    page_.add(structured_, std::move(item.json));
    text_ += item.text + '\n';
    has_any_ = true;
  }

  const Page& page_;
  object structured_;
  std::string text_;
  std::size_t text_left_ = 0;
  std::size_t json_left_ = 0;
  bool has_any_ = false;
};

}  // namespace

std::string cursor_text(PagePlace place, std::string_view identity) {
  return std::to_string(place.item) + '.' + std::to_string(place.byte) + '.' + seal(identity);
}

tl::expected<PagePlace, ToolError> read_cursor(std::string_view cursor, std::string_view identity) {
  const std::size_t first = cursor.find('.');
  const std::size_t second = first == cursor.npos ? first : cursor.find('.', first + 1);
  if (second != cursor.npos && cursor.substr(second + 1) == seal(identity)) {
    const auto item = parse_number(cursor.substr(0, first));
    const auto byte = parse_number(cursor.substr(first + 1, second - first - 1));
    if (item && byte && *item >= 0 && *byte >= 0) {
      return PagePlace{.item = static_cast<std::size_t>(*item), .byte = static_cast<std::size_t>(*byte)};
    }
  }
  return tl::unexpected(bad_argument("'cursor' is not one of this call's",
                                     "next of an earlier answer, with the same arguments, or no cursor"));
}

ToolResult Page::cut(PagePlace from, std::size_t max_bytes, std::string_view identity) const {
  Answer answer(*this, max_bytes, identity);
  for (std::size_t index = from.item; index < items.size(); ++index) {
    const Item& item = items[index];
    const std::size_t begin = index == from.item ? from.byte : 0;
    const bool is_bodiless = !item.body || begin >= item.body->size();
    if (is_bodiless && item.body && begin > 0) continue;  // told to its end
    Item whole = item;
    if (item.body) item.fill(whole, std::string_view(*item.body).substr(begin), begin);
    if (answer.add(whole)) continue;
    // One that could stand whole on the next page is not cut, unless the page would stay empty.
    if (!answer.is_empty()) return std::move(answer).finish(cursor_text({.item = index, .byte = begin}, identity));
    const std::size_t told = item.body ? answer.add_part(item, begin) : 0;
    if (told > 0) return std::move(answer).finish(cursor_text({.item = index, .byte = begin + told}, identity));
    answer.add_alone(whole);
  }
  return std::move(answer).finish(std::nullopt);
}

std::function<void(object&, object)> into_list(std::string name) {
  return [name = std::move(name)](object& structured, object json) {
    structured[name].as_array().push_back(std::move(json));
  };
}

}  // namespace duet::app::mcp
