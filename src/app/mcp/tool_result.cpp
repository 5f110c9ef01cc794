#include "app/mcp/tool_result.h"

#include <algorithm>

#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

// A sentence ends once, and a text of two lines has no third.
std::string sentence(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text.ends_with('?') ? text : text + '.';
}

}  // namespace

ToolError bad_argument(std::string problem, std::string remedy) {
  return {.code = "bad-argument", .problem = std::move(problem), .remedy = std::move(remedy)};
}

ToolResult ToolResult::of(const ToolError& error, std::size_t max_bytes) {
  constexpr std::size_t fixed = 32;  // the code and the words around
  const std::size_t half = (max_bytes - fixed) / 2;
  return {.text = error.code + ": " + sentence(shortened(error.problem, half)) +
                  "\nTry: " + sentence(shortened(error.remedy, half)),
          .is_error = true};
}

std::string ToolResult::members(std::size_t max_bytes) const {
  const std::string json = structured ? rpc::to_text(*structured) : std::string();
  const std::size_t longest = std::max(text.size(), json.size());
  if (longest > max_bytes) {
    return of(bad_argument("the least that can be answered does not fit into max_bytes",
                           "max_bytes " + std::to_string(longest) + " or more"),
              max_bytes)
        .members();
  }
  std::string out = R"("content":[{"type":"text","text":)" + rpc::quoted(text) + "}]";
  if (structured) out += R"(,"structuredContent":)" + json;
  if (is_error) out += R"(,"isError":true)";
  return out;
}

std::string one_line(std::string_view text, std::size_t most) {
  const std::string_view first = rpc::first_characters(text, most);
  std::string line(first);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return first.size() < text.size() ? line + "…" : line;
}

std::string shortened(std::string_view text, std::size_t most) {
  constexpr std::string_view dots = "…";
  if (text.size() <= most) return std::string(text);
  return std::string(rpc::first_bytes(text, most - dots.size())).append(dots);
}

std::string member_text(const boost::json::object& from, std::string_view name) {
  const boost::json::value* const found = from.if_contains(name);
  if (found == nullptr || found->is_null()) return {};
  return found->is_string() ? std::string(found->get_string()) : rpc::to_text(*found);
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace duet::app::mcp
