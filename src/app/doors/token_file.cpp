#include "app/doors/token_file.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/system/error_code.hpp>

#include "app/doors/roles.h"
#include "app/words/client_name.h"
#include "app/words/sha256.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

constexpr std::string_view kind_of_file = "duet-rpc tokens 1\n";
constexpr std::string_view checksum_word = "sha256 ";
constexpr std::size_t digits_of_checksum = 64;
constexpr std::int64_t latest_time = 9'000'000'000'000;  // milliseconds; later ones do not fit into a UtcTime

using boost::json::object;
using boost::json::value;

std::string token_line(const SavedToken& token) {
  rpc::ObjectText line;
  line.add("name", token.name).add("role", token.role).add("sha256", token.sha256);
  if (token.browser) line.add_json("browser", "true");
  line.add("created", base::milliseconds_of(token.created));
  if (token.used) line.add("used", base::milliseconds_of(*token.used));
  if (token.expires) line.add("expires", base::milliseconds_of(*token.expires));
  return line.take() + '\n';
}

std::string text_in(const object& line, std::string_view name) {
  const value* const found = line.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::optional<std::int64_t> number_in(const object& line, std::string_view name) {
  const value* const found = line.if_contains(name);
  boost::system::error_code fault;
  const std::int64_t number = found != nullptr ? found->to_number<std::int64_t>(fault) : -1;
  const bool is_sound = !fault && number >= 0 && number <= latest_time;
  return is_sound ? std::optional(number) : std::nullopt;
}

std::optional<base::UtcTime> time_in(const object& line, std::string_view name) {
  const std::optional<std::int64_t> number = number_in(line, name);
  return number ? std::optional(base::UtcTime(std::chrono::milliseconds(*number))) : std::nullopt;
}

std::optional<object> object_of(std::string_view line) {
  if (!rpc::is_valid_json(line)) return std::nullopt;
  const value parsed = rpc::parse_value(line);
  return parsed.is_object() ? std::optional(parsed.get_object()) : std::nullopt;
}

std::optional<SavedToken> token_in(std::string_view text) {
  const std::optional<object> line = object_of(text);
  if (!line) return std::nullopt;
  SavedToken token{.name = text_in(*line, "name"), .role = text_in(*line, "role"), .sha256 = text_in(*line, "sha256")};
  const std::optional<base::UtcTime> created = time_in(*line, "created");
  const bool is_sound =
      is_client_name(token.name) && is_role(token.role) && token.sha256.size() == digits_of_checksum && created;
  if (!is_sound) return std::nullopt;
  token.browser = line->contains("browser");
  token.created = *created;
  token.used = time_in(*line, "used");
  token.expires = time_in(*line, "expires");
  const bool times_are_sound =
      line->contains("used") == token.used.has_value() && line->contains("expires") == token.expires.has_value();
  return times_are_sound ? std::optional(std::move(token)) : std::nullopt;
}

// The lines before the checksum; none if it is not theirs.
std::optional<std::string_view> checked_lines(std::string_view text) {
  const std::size_t size = checksum_word.size() + digits_of_checksum + 1;
  if (text.size() < size) return std::nullopt;
  const std::string_view lines = text.substr(0, text.size() - size);
  const bool is_theirs = text.substr(lines.size()) == std::string(checksum_word) + sha256(lines) + '\n';
  return is_theirs ? std::optional(lines) : std::nullopt;
}

std::string_view take_line(std::string_view& lines) {
  const std::size_t end = std::min(lines.find('\n'), lines.size());
  const std::string_view line = lines.substr(0, end);
  lines.remove_prefix(std::min(end + 1, lines.size()));
  return line;
}

}  // namespace

std::string token_file_text(const SavedTokens& saved) {
  std::string text(kind_of_file);
  text += rpc::ObjectText().add("browsers", saved.browsers).take() + '\n';
  for (const SavedToken& token : saved.tokens) text += token_line(token);
  const std::string checksum = sha256(text);
  return text.append(checksum_word).append(checksum).append("\n");
}

tl::expected<SavedTokens, std::string> parse_token_file(std::string_view text) {
  if (!text.starts_with(kind_of_file))
    return tl::unexpected(std::string("it is no file of tokens, or one of another version"));
  std::optional<std::string_view> lines = checked_lines(text);
  if (!lines) return tl::unexpected(std::string("it is not as it was written"));
  lines->remove_prefix(kind_of_file.size());
  const std::optional<object> counts = object_of(take_line(*lines));
  const std::optional<std::int64_t> browsers = counts ? number_in(*counts, "browsers") : std::nullopt;
  if (!browsers) return tl::unexpected(std::string("a line of it makes no sense"));
  SavedTokens saved{.browsers = static_cast<std::uint64_t>(*browsers)};
  std::set<std::string> names;
  while (!lines->empty()) {
    std::optional<SavedToken> token = token_in(take_line(*lines));
    if (!token || !names.insert(token->name).second) return tl::unexpected(std::string("a line of it makes no sense"));
    saved.tokens.push_back(std::move(*token));
  }
  return saved;
}

}  // namespace duet::app
