#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "app/mcp/tool_result.h"

namespace duet::app::mcp {

/// One thing of a list, in both forms that it is told in. A long one may be cut in its `body`, at a line if there is
/// one; what is left of it comes on the next page.
struct Item {
  boost::json::object json = {};
  std::string text = {};                 ///< without a line end
  std::optional<std::string> body = {};  ///< what may be cut; it is in neither of the above
  /// Puts a part of the body into both; the part begins `begin` bytes into it.
  std::function<void(Item& item, std::string_view part, std::size_t begin)> fill = {};
  /// The same with texts of no more than so many bytes, for a page that it does not fit on. None: it has no such texts.
  std::function<Item(std::size_t most)> shorter = {};
};

/// Where a page begins: so many items are told already, and so many bytes of the next one's body.
struct PagePlace {
  std::size_t item = 0;
  std::size_t byte = 0;
};

/// `next` of a page. It is good for the call that it is made for (see Arguments::identity()), and for no other.
std::string cursor_text(PagePlace place, std::string_view identity);
tl::expected<PagePlace, ToolError> read_cursor(std::string_view cursor, std::string_view identity);

/// Puts items into an answer as long as both its forms stay within `max_bytes`. Only a single item that has nothing to
/// cut may be longer.
struct Page {
  boost::json::object head = {};  ///< members that every page has
  std::string before = {};        ///< lines of the text before the items
  std::string after = {};         ///< and after them
  /// Where an item goes: its place in `head`. Called in order.
  std::function<void(boost::json::object& structured, boost::json::object json)> add = {};
  std::vector<Item> items = {};

  ToolResult cut(PagePlace from, std::size_t max_bytes, std::string_view identity) const;
};

/// The members of a list called `name` are the items.
std::function<void(boost::json::object&, boost::json::object)> into_list(std::string name);

}  // namespace duet::app::mcp
