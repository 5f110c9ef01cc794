#include "app/doors/event_stream.h"

#include <charconv>
#include <limits>
#include <vector>

#include "app/words/task_name.h"
#include "duet/framing/url_query.h"

namespace duet::app {
namespace {

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool is_task(std::string_view name) {
  constexpr std::string_view prefix = "task-";
  return name.starts_with(prefix) && whole_number(name.substr(prefix.size()));
}

bool take(StreamWish& wish, const framing::QueryPart& part) {
  if (part.value.empty()) return false;
  if (part.name == "since") {
    const bool is_first = !wish.since;
    wish.since = whole_number(part.value);
    return is_first && wish.since;
  }
  if (part.name == "kind") {
    wish.kinds.insert(part.value);
    return true;
  }
  if ((part.name != "task" && part.name != "output") || !is_task(task_name(part.value))) return false;
  (part.name == "task" ? wish.tasks : wish.outputs).insert(task_name(part.value));
  return true;
}

// `EPOCH.SEQ`: what follows that event. A client may have made it up; then it is as if another epoch stood there.
void resume_behind(StreamWish& wish, std::string_view last_id) {
  const std::size_t dot = last_id.rfind('.');
  const auto seq = dot == std::string_view::npos ? std::nullopt : whole_number(last_id.substr(dot + 1));
  const bool makes_sense = seq && *seq < std::numeric_limits<std::uint64_t>::max();
  wish.epoch = makes_sense ? std::string(last_id.substr(0, dot)) : std::string("?");
  wish.since = makes_sense ? *seq + 1 : 1;
}

}  // namespace

std::string streamed(const StreamedEvent& event) {
  std::string text;
  if (event.seq != 0)
    text.append("id: ").append(event.epoch).append(".").append(std::to_string(event.seq)).append("\n");
  text.append("event: ").append(event.kind).append("\ndata: ").append(event.params).append("\n\n");
  return text;
}

std::optional<StreamWish> stream_wish(std::string_view query, std::optional<std::string_view> last_id) {
  const std::optional<std::vector<framing::QueryPart>> parts = framing::read_query(query);
  if (!parts) return std::nullopt;
  StreamWish wish;
  for (const framing::QueryPart& part : *parts) {
    if (!take(wish, part)) return std::nullopt;
  }
  if (last_id && !last_id->empty()) resume_behind(wish, *last_id);
  return wish;
}

}  // namespace duet::app
