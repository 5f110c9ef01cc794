#include "duet/peer/lost_text.h"

#include <algorithm>

namespace duet::peer {

void LostText::begin_chunk(std::string_view bytes) {
  chunk_ = bytes;
  received_ += bytes.size();
}

void LostText::begin_message(std::size_t unused) { looked_at_ = received_ - unused; }

void LostText::end_message(std::string_view held) {
  message_end_ = looked_at_;
  kept_.clear();
  const std::uint64_t behind = received_ - message_end_;
  if (behind <= chunk_.size() || behind > held.size()) return;
  const std::string_view before_chunk = held.substr(0, held.size() - chunk_.size());
  kept_ = before_chunk.substr(held.size() - static_cast<std::size_t>(behind), most_kept);
}

void LostText::end_chunk() {
  kept_ = known();
  looked_at_ = received_;
  chunk_ = {};
}

std::string LostText::start_until(std::uint64_t end) const {
  const std::uint64_t chunk_begin = received_ - chunk_.size();
  const std::uint64_t begin = std::max(message_end_, chunk_begin);
  const std::size_t size = end > begin ? static_cast<std::size_t>(end - begin) : 0;
  const std::string_view rest = chunk_.substr(static_cast<std::size_t>(begin - chunk_begin), size);
  const std::string all = kept_ + std::string(rest.substr(0, most_kept - kept_.size()));
  return all.substr(0, end > message_end_ ? static_cast<std::size_t>(end - message_end_) : 0);  // more may be kept
}

std::string_view start_of_answer(std::string_view text, bool is_printed) {
  constexpr std::string_view header = "Content-Length:";
  const std::size_t brace = text.find("{\"");
  if (brace == std::string_view::npos || (is_printed && text.find(header, 1) < brace)) return {};
  text = text.substr(0, text.find(header, brace));
  const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
  return has(R"("jsonrpc")") && !has(R"("method")") ? text : std::string_view();
}

std::string_view visible_id(std::string_view start) {
  constexpr std::string_view name = R"("id":)";
  const std::size_t at = start.find(name);
  if (at == std::string_view::npos || std::ranges::count(start.substr(0, at), '{') != 1) return {};
  std::string_view id = start.substr(at + name.size());
  id.remove_prefix(std::min(id.find_first_not_of(' '), id.size()));
  const std::size_t digits = std::min(id.find_first_not_of("0123456789"), id.size());
  return digits < id.size() ? id.substr(0, digits) : std::string_view();  // the number may go on behind the end
}

}  // namespace duet::peer
